// Two coroutines that sleep: a download that is retried with growing delays, and a heartbeat that goes on until the
// download is done. Time is virtual, so seconds take no time. With a rondo::timer instead of the manual_timer they would
// be real.
#include <chrono>
#include <coroutine>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stop_token>

#include <rondo/coroutine.hpp>
#include <rondo/manual_timer.hpp>

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// A minimal coroutine type: it runs at once until it first sleeps, and destroys itself when it ends.
struct routine {
  struct promise_type {
    routine get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

std::ostream& at(const rondo::scheduler& time) {
  return std::cout << std::setw(5) << time.now().time_since_epoch() / 1ms << " ms  ";
}

routine beat(rondo::scheduler& time, std::stop_token over) {
  int beats = 0;
  while (co_await rondo::sleep_for(time, 1s, over)) at(time) << "beat " << ++beats << '\n';
  at(time) << "stopped after " << beats << " beats\n";
}

routine download(rondo::scheduler& time, std::stop_source over) {
  const auto server_is_up = time.now() + 5s;
  for (milliseconds wait = 300ms; time.now() < server_is_up; wait *= 2) {
    at(time) << "no answer; again in " << wait / 1ms << " ms\n";
    co_await rondo::sleep_for(time, wait);
  }
  at(time) << "downloaded\n";
  over.request_stop();  // wakes the heartbeat for the last time
}

}  // namespace

int main() {
  rondo::manual_timer time;
  std::stop_source over;
  beat(time, over.get_token());
  download(time, over);
  while (time.advance_to_next() != 0) continue;
}
