// Timers by key as people write them: a map of another library's timers, under a mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#ifdef WITH_ASIO
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

template <class OnFire>
class keyed_asio {
 public:
  keyed_asio(std::size_t, OnFire on_fire) : on_fire_(on_fire) {
    driver_ = std::thread([this] { context_.run(); });
  }
  ~keyed_asio() {
    context_.stop();
    driver_.join();
  }
  keyed_asio(const keyed_asio&) = delete;
  keyed_asio& operator=(const keyed_asio&) = delete;

  /// Setting a timer that is pending cancels its wait first.
  void set(std::size_t which, std::chrono::milliseconds delay) {
    const int key = static_cast<int>(which);
    const std::lock_guard hold(mutex_);
    auto& timer = timers_.try_emplace(key, context_).first->second;
    timer.expires_after(delay);
    timer.async_wait([this, key](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      forget(key);
      on_fire_(static_cast<std::size_t>(key));
    });
  }
  void cancel(std::size_t which) { forget(static_cast<int>(which)); }
  std::size_t pending() const {
    const std::lock_guard hold(mutex_);
    return timers_.size();
  }

 private:
  void forget(int key) {
    const std::lock_guard hold(mutex_);
    timers_.erase(key);
  }

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context_);
  mutable std::mutex mutex_;
  std::unordered_map<int, boost::asio::steady_timer> timers_;
  OnFire on_fire_;
  std::thread driver_;
};
#endif

#ifdef WITH_LIBEVENT
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include <memory>

template <class OnFire>
class keyed_libevent {
 public:
  keyed_libevent(std::size_t, OnFire on_fire) : on_fire_(on_fire) {
    loop_ = std::thread([this] { event_base_loop(base_.get(), EVLOOP_NO_EXIT_ON_EMPTY); });
  }
  ~keyed_libevent() {
    event_base_loopexit(base_.get(), nullptr);
    loop_.join();
  }
  keyed_libevent(const keyed_libevent&) = delete;
  keyed_libevent& operator=(const keyed_libevent&) = delete;

  /// Adding an event that is pending moves it.
  void set(std::size_t which, std::chrono::milliseconds delay) {
    const timeval wait{delay.count() / 1000, delay.count() % 1000 * 1000};
    const std::lock_guard hold(mutex_);
    const auto [place, is_new] = timers_.try_emplace(static_cast<int>(which));
    entry& e = place->second;
    if (is_new) {
      e = {{}, this, place->first};
      evtimer_assign(&e.timer, base_.get(), &keyed_libevent::fire, &e);
    }
    evtimer_add(&e.timer, &wait);
  }
  void cancel(std::size_t which) {
    typename map::node_type gone;
    {
      const std::lock_guard hold(mutex_);
      gone = timers_.extract(static_cast<int>(which));
    }
    // Without the mutex: it waits until a callback in progress has returned.
    if (!gone.empty()) evtimer_del(&gone.mapped().timer);
  }
  std::size_t pending() const {
    const std::lock_guard hold(mutex_);
    return timers_.size();
  }

 private:
  struct entry {
    event timer;
    keyed_libevent* owner;
    int key;
  };
  using map = std::unordered_map<int, entry>;
  struct free_base {
    void operator()(event_base* base) const noexcept { event_base_free(base); }
  };

  static event_base* make_base() {
    evthread_use_pthreads();
    return event_base_new();
  }

  static void fire(evutil_socket_t, short, void* fired) {
    auto* const e = static_cast<entry*>(fired);
    keyed_libevent& owner = *e->owner;
    const int key = e->key;
    {
      const std::lock_guard hold(owner.mutex_);
      owner.timers_.erase(key);
    }
    owner.on_fire_(static_cast<std::size_t>(key));
  }

  mutable std::mutex mutex_;
  map timers_;  // outlives the base, which ends pending events
  std::unique_ptr<event_base, free_base> base_{make_base()};
  OnFire on_fire_;
  std::thread loop_;
};
#endif
