#include <future>
#include <iostream>
#include <stdexcept>

#include <rondo/timer.hpp>

int main() {
  using namespace std::chrono_literals;
  std::promise<void> done;
  rondo::timer timer({.on_error = [](std::exception_ptr, const rondo::firing& f) {
    std::cout << "run " << f.run << " failed" << std::endl;  // and the timer continues
  }});
  // Three runs, now and every 200 ms, without drift. f.lateness and f.missed report delays.
  timer.schedule(rondo::every(200ms).first_after(0s).times(3), [&](const rondo::firing& f) {
    if (f.run == 2) throw std::runtime_error("no connection");
    std::cout << "run " << f.run << std::endl;
    if (f.run == 3) done.set_value();
  });
  done.get_future().wait();
}
