#include <event2/event.h>
#include <event2/event_struct.h>

#include "virtual_clock.hpp"
#include "rivals.hpp"

namespace {

class libevent_timers {
 public:
  libevent_timers(std::uint32_t n, firings& fired) : timers_(n), base_(event_base_new()), fired_(fired) {
    running = this;
    for (std::uint32_t i = 0; i != n; ++i) {
      event_assign(&timers_[i].event, base_, -1, 0, on_due, &timers_[i]);
      timers_[i].number = i;
    }
  }
  ~libevent_timers() { event_base_free(base_); }
  libevent_timers(const libevent_timers&) = delete;
  libevent_timers& operator=(const libevent_timers&) = delete;

  void set(std::uint32_t number, std::int64_t due) {
    const std::int64_t delay = due - now_;
    const timeval time{static_cast<time_t>(delay / 1000), static_cast<suseconds_t>(delay % 1000 * 1000)};
    event_add(&timers_[number].event, &time);
  }
  void cancel(std::uint32_t number) { event_del(&timers_[number].event); }
  void advance(std::int64_t to) {
    now_ = to;
    clock_.move_to(to);
    event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  }

 private:
  struct timer {
    struct event event;
    std::uint32_t number;
  };

  static void on_due(int /*fd*/, short /*events*/, void* due) {
    running->fired_(*running, static_cast<timer*>(due)->number);
  }
  inline static libevent_timers* running = nullptr;  // a callback has only one argument

  virtual_clock clock_;
  std::vector<timer> timers_;
  event_base* base_;
  std::int64_t now_ = 0;
  firings& fired_;
};

}  // namespace

const rival libevent{"libevent", run_with<libevent_timers>};
