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

/// A minimal coroutine type. The call only creates the coroutine; start(), called once, runs it until it first sleeps,
/// and it destroys itself when it ends. (With g++ 15 and 16 it must not begin inside the call, if another thread may
/// resume it: sleep_for() says why.)
struct [[nodiscard]] routine {
  struct promise_type {
    routine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  void start() { coroutine.resume(); }

  std::coroutine_handle<> coroutine;
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
  beat(time, over.get_token()).start();
  download(time, over).start();
  while (time.advance_to_next() != 0) continue;
}
