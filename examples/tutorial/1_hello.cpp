// Says hello, then keeps ticking until it says goodbye.
#include <future>
#include <iostream>

#include <rondo/timer.hpp>

int main() {
  using namespace std::chrono_literals;
  std::promise<void> done;
  rondo::timer timer;
  timer.schedule_after(100ms, [] { std::cout << "hello" << std::endl; });
  timer.schedule_every(200ms, [] { std::cout << "tick" << std::endl; });
  timer.schedule_after(900ms, [&] { done.set_value(); });
  done.get_future().wait();
  std::cout << "goodbye" << std::endl;
}
