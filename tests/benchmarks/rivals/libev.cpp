#include <ev.h>

#include "virtual_clock.hpp"
#include "rivals.hpp"

namespace {

class libev_timers {
 public:
  libev_timers(std::uint32_t n, firings& fired)
      : timers_(n), loop_(ev_loop_new(EVFLAG_NOENV)), fired_(fired) {
    ev_set_userdata(loop_, this);
    for (std::uint32_t i = 0; i != n; ++i) {
      ev_init(&timers_[i].watcher, on_due);
      timers_[i].number = i;
    }
  }
  ~libev_timers() { ev_loop_destroy(loop_); }
  libev_timers(const libev_timers&) = delete;
  libev_timers& operator=(const libev_timers&) = delete;

  void set(std::uint32_t number, std::int64_t due) {
    // A timer fires only after its deadline. As the clock is always at a whole tick, 0.1 ticks earlier makes it fire in
    // time.
    ev_timer_set(&timers_[number].watcher, static_cast<double>(due - now_) * 1e-3 - 1e-4, 0.);
    ev_timer_start(loop_, &timers_[number].watcher);
  }
  void cancel(std::uint32_t number) { ev_timer_stop(loop_, &timers_[number].watcher); }
  void advance(std::int64_t to) {
    now_ = to;
    clock_.move_to(to);
    ev_run(loop_, EVRUN_NOWAIT);
  }

 private:
  struct timer {
    ev_timer watcher;
    std::uint32_t number;
  };

  static void on_due(struct ev_loop* loop, ev_timer* watcher, int /*events*/) {
    auto& self = *static_cast<libev_timers*>(ev_userdata(loop));
    self.fired_(self, reinterpret_cast<timer*>(watcher)->number);
  }

  virtual_clock clock_;
  std::vector<timer> timers_;
  struct ev_loop* loop_;
  std::int64_t now_ = 0;
  firings& fired_;
};

}  // namespace

const rival libev{"libev", run_with<libev_timers>};
