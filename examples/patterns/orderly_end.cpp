#include <iostream>

#include <rondo/timer.hpp>

int main() {
  using namespace std::chrono_literals;
  rondo::timer timer;
  timer.schedule_every(1s, [] { std::cout << "heartbeat" << std::endl; });
  timer.schedule_after(100ms, [] { std::cout << "the mail is sent" << std::endl; });
  timer.schedule_after(1h, [] { std::cout << "the report is written" << std::endl; }, {.name = "report"});

  if (timer.drain(500ms)) return 0;  // no new timers, no more heartbeats; runs what is due by then
  for (rondo::unfired& left : timer.stop()) {
    std::cout << left.name << " has not run" << std::endl;
    left.work();  // or save it, or drop it
  }
}
