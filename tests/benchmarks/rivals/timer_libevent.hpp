// libevent's timers, in a loop on its own thread, while other threads set and cancel them.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

/// Intrusive: the events are created in advance and store a plain function and a pointer.
template <class OnFire>
class libevent_timers {
 public:
  libevent_timers(std::size_t timers, OnFire on_fire) : entries_(timers), on_fire_(on_fire) {
    for (std::size_t i = 0; i != timers; ++i) {
      entries_[i].owner = this;
      evtimer_assign(&entries_[i].timer, base_.get(), &libevent_timers::fire, &entries_[i]);
    }
    loop_ = std::thread([this] { event_base_loop(base_.get(), EVLOOP_NO_EXIT_ON_EMPTY); });
  }
  ~libevent_timers() {
    event_base_loopexit(base_.get(), nullptr);
    loop_.join();
  }
  libevent_timers(const libevent_timers&) = delete;
  libevent_timers& operator=(const libevent_timers&) = delete;

  void set(std::size_t which, std::chrono::milliseconds delay) {
    const timeval wait{delay.count() / 1000, delay.count() % 1000 * 1000};
    evtimer_add(&entries_[which].timer, &wait);
  }
  void cancel(std::size_t which) { evtimer_del(&entries_[which].timer); }
  void reschedule(std::size_t which, std::chrono::milliseconds delay) { set(which, delay); }

 private:
  struct entry {
    event timer;
    libevent_timers* owner;
  };
  struct free_base {
    void operator()(event_base* base) const noexcept { event_base_free(base); }
  };

  static event_base* make_base() {
    evthread_use_pthreads();
    return event_base_new();
  }

  static void fire(evutil_socket_t, short, void* fired) {
    auto* const e = static_cast<entry*>(fired);
    e->owner->on_fire_(static_cast<std::size_t>(e - e->owner->entries_.data()));
  }

  std::vector<entry> entries_;  // outlives the base, which ends pending events
  std::unique_ptr<event_base, free_base> base_{make_base()};
  OnFire on_fire_;
  std::thread loop_;
};
