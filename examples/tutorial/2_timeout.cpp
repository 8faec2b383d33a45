// A timeout is a timer that is normally cancelled before it fires.
#include <iostream>

#include <rondo/timer.hpp>

int main() {
  using namespace std::chrono_literals;
  rondo::timer timer;
  const auto give_up = [] { std::cout << "no answer, giving up" << std::endl; };

  const rondo::timer_id first = timer.schedule_after(10s, give_up);
  if (timer.cancel(first) == rondo::cancel_result::cancelled) std::cout << "answered in time" << std::endl;

  const rondo::timer_id second = timer.schedule_after(10ms, give_up);
  timer.drain(1min);  // accepts no new timers, and returns when all have run
  if (timer.cancel(second) == rondo::cancel_result::gone) std::cout << "too late" << std::endl;
}
