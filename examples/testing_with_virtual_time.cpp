// How to test code that uses timers. The code takes a rondo::scheduler&, and the test passes a manual_timer, whose
// time passes only when the test advances it. No sleeps, no flaky tests: hours take microseconds.
#include <cstdlib>
#include <functional>
#include <iostream>

#include <rondo/manual_timer.hpp>

using namespace std::chrono_literals;

// The code under test: closes a connection that has been idle for a minute, with a warning ten seconds before.
class idle_connection {
 public:
  idle_connection(rondo::scheduler& timers, std::function<void(const char*)> tell)
      : timers_(timers), tell_(std::move(tell)) {
    warning_ = timers_.schedule_after(50s, [this] { tell_("closing soon"); });
    closing_ = timers_.schedule_after(60s, [this] { tell_("closed"); });
  }
  ~idle_connection() {
    timers_.cancel_and_wait(warning_);
    timers_.cancel_and_wait(closing_);
  }
  void on_traffic() {
    if (!timers_.reschedule_after(closing_, 60s)) return;  // too late
    if (!timers_.reschedule_after(warning_, 50s))          // it has been given, and is out of date
      warning_ = timers_.schedule_after(50s, [this] { tell_("closing soon"); });
  }

 private:
  rondo::scheduler& timers_;
  std::function<void(const char*)> tell_;
  rondo::timer_id warning_, closing_;
};

// Its test, here without a framework.
void expect(const char* what, bool right) {
  std::cout << (right ? "ok    " : "WRONG ") << what << '\n';
  if (!right) std::exit(1);
}

int main() {
  rondo::manual_timer time;
  std::string told;
  idle_connection connection(time, [&](const char* what) { told += what; });

  time.advance(49s);
  expect("nothing is said for 49 s", told.empty());
  connection.on_traffic();
  time.advance(49s);
  expect("traffic restarts the minute", told.empty());
  time.advance(1s);
  expect("the warning comes 10 s before the end", told == "closing soon");
  connection.on_traffic();
  time.advance(1h);
  expect("more traffic starts it all again", told == "closing soonclosing soonclosed");
  expect("nothing is pending afterwards", time.pending() == 0);
}
