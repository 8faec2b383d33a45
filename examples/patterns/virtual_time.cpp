#include <atomic>
#include <iostream>

#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

class session {  // ends after 30 s without traffic; takes any scheduler
 public:
  explicit session(rondo::scheduler& timer) : timers_(timer) {
    using namespace std::chrono_literals;
    silence_ = timers_.schedule_after(30s, [this] { is_open = false; });
  }
  void on_traffic() { timers_.reschedule_after(silence_, std::chrono::seconds(30)); }
  std::atomic<bool> is_open = true;

 private:
  rondo::timer_id silence_;
  rondo::timer_scope timers_;  // last member: its destructor cancels the timers and waits for running tasks
};

int main() {
  using namespace std::chrono_literals;
  rondo::manual_timer time;  // in production: a rondo::timer
  session s(time);
  time.advance(29s);
  s.on_traffic();
  time.advance(29s);
  std::cout << (s.is_open ? "open" : "closed") << " after 58 s\n";
  time.advance(1s);
  std::cout << (s.is_open ? "open" : "closed") << " after 59 s, without waiting for one\n";
}
