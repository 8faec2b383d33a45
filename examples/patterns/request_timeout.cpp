#include <iostream>

#include <rondo/keyed_timers.hpp>
#include <rondo/timer.hpp>

int main() {
  using namespace std::chrono_literals;
  rondo::timer timer;
  rondo::keyed_timers<int> timeouts(timer);  // one timer for each request
  const auto on_sent = [&](int request) {
    timeouts.set_after(request, 500ms, [=] { std::cout << "no answer to " << request << std::endl; });
  };
  const auto on_answer = [&](int request) {
    if (timeouts.cancel(request) == rondo::cancel_result::cancelled)  // else the timeout came first
      std::cout << "answer to " << request << std::endl;
  };

  on_sent(1);
  on_sent(2);
  on_answer(1);
  timer.drain(1min);  // waits until all pending timers have run
}
