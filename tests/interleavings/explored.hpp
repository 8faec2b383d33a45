// Locks, atomics and conditions that hand control to the explorer before each use. Outside of an exploration they work
// as others do.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

#include "interleavings/explorer.hpp"
#include "interleavings/held_locks.hpp"
#include "sync/short_lock.hpp"

namespace rondo::test {

/// What a test makes the library's locks and conditions do wrong, to see that the explorer notices it.
struct planted_mistakes {
  std::optional<lock_rank> not_locked;  // locks of this rank are released at once
  bool not_notified = false;            // notify_one() does nothing
};
inline planted_mistakes planted;

class explored_mutex {
 public:
  explicit explored_mutex(const char* sort = "mutex") noexcept : sort_(sort) {}
  explored_mutex(const explored_mutex&) = delete;
  explored_mutex& operator=(const explored_mutex&) = delete;

  void lock() {
    await_turn({"lock", sort_, {access{this, true}}}, [this] { return !held_; });
    lock_at_once();
  }
  bool try_lock() {
    await_turn({"try to lock", sort_, {access{this, true}}});
    return mutex_.try_lock() && (held_ = true);
  }
  /// Takes the lock within a step that has already waited until it was free.
  void lock_at_once() noexcept {
    mutex_.lock();
    held_ = true;
  }
  void unlock() {
    if (!std::exchange(held_, false)) return;  // with planted mistakes it may not be held
    mutex_.unlock();
    note_released(this);
  }

  bool held() const noexcept { return held_; }
  const char* sort() const noexcept { return sort_; }

 private:
  const char* sort_;
  detail::short_lock mutex_;  // free when a step takes it; other threads may wait for it
  bool held_ = false;
};

/// Called once, before the next lock of a stripe.
inline std::function<void()> before_stripe_lock;

/// A lock of the library.
template <lock_rank Rank>
class ranked_mutex : public explored_mutex {
 public:
  ranked_mutex() noexcept : explored_mutex(name_of(Rank)) {}

  void lock() {
    if (Rank == lock_rank::stripe && before_stripe_lock) std::exchange(before_stripe_lock, nullptr)();
    explored_mutex::lock();
    held_locks::add(Rank, this);
    if (planted.not_locked == Rank) unlock();
  }
  bool try_lock() {
    const bool is_taken = explored_mutex::try_lock();
    if (is_taken) held_locks::add(Rank, this);
    return is_taken;
  }
  void lock_at_once() {
    explored_mutex::lock_at_once();
    held_locks::add(Rank, this);
  }
  void unlock() {
    held_locks::remove(this);
    explored_mutex::unlock();
  }
};

/// Wakes threads in the order in which they began to wait.
class explored_condition {
 public:
  explored_condition() noexcept = default;
  explored_condition(const explored_condition&) = delete;
  explored_condition& operator=(const explored_condition&) = delete;

  template <class Lock>
  void wait(Lock& hold) {
    if (!is_exploring()) return woken_.wait(hold);
    sleep(*hold.mutex(), std::nullopt);
  }
  template <class Lock>
  std::cv_status wait_until(Lock& hold, time_point until) {
    if (!is_exploring()) return woken_.wait_until(hold, until);
    return sleep(*hold.mutex(), until);
  }

  void notify_one() {
    if (planted.not_notified) return;
    await_turn({"notify", "condition", {access{this, true}}});
    if (!waiting_.empty()) wake_first();
    woken_.notify_one();
  }
  void notify_all() {
    await_turn({"notify all", "condition", {access{this, true}}});
    while (!waiting_.empty()) wake_first();
    woken_.notify_all();
  }

 private:
  struct waiter {
    std::size_t thread;
    bool is_timed;
    bool notified;
  };

  template <class Mutex>
  std::cv_status sleep(Mutex& mutex, std::optional<time_point> until) {
    await_turn({"wait for", "condition", {access{this, true}}});
    waiter me{this_thread(), until.has_value(), false};
    waiting_.push_back(&me);
    mutex.unlock();
    operation wake{"wake, lock", mutex.sort(), {access{&mutex, true}}};
    if (until) {  // the wake-up may race with a notification; otherwise the notification always comes first
      wake.accesses[1] = {this, true};
      wake.accesses[2] = virtual_time::reading();
    }
    const auto possible = [&] {
      return !mutex.held() && (me.notified || (until && virtual_time::has_come(*until)));
    };
    await_turn(wake, possible, until);
    std::erase(waiting_, &me);
    mutex.lock_at_once();
    return me.notified ? std::cv_status::no_timeout : std::cv_status::timeout;
  }

  void wake_first() {
    waiting_.front()->notified = true;
    if (!waiting_.front()->is_timed) note_woke(waiting_.front()->thread);
    waiting_.erase(waiting_.begin());
  }

  std::vector<waiter*> waiting_;
  std::condition_variable_any woken_;  // for threads that are not explored
};

/// Called once, before the next store to an explored_atomic.
inline std::function<void()> before_store;

template <class T>
class explored_atomic {
 public:
  using order = std::memory_order;  // ignored: always sequentially consistent

  explored_atomic() noexcept = default;
  explored_atomic(T value) noexcept : value_(value) {}
  explored_atomic(const explored_atomic&) = delete;
  explored_atomic& operator=(const explored_atomic&) = delete;

  T load(order = order::seq_cst) const {
    await_turn({"load", "atomic", {access{this, false}}});
    return noted(value_.load());
  }
  void store(T value, order = order::seq_cst) {
    if (before_store) std::exchange(before_store, nullptr)();
    change("store");
    value_.store(noted(value));
  }
  T exchange(T value, order = order::seq_cst) {
    change("exchange");
    return noted(value_.exchange(value));
  }
  T fetch_add(T more, order = order::seq_cst) {
    change("add to");
    return noted(value_.fetch_add(more));
  }
  T fetch_sub(T less, order = order::seq_cst) {
    change("subtract from");
    return noted(value_.fetch_sub(less));
  }
  bool compare_exchange_strong(T& expected, T value, order = order::seq_cst, order = order::seq_cst) {
    change("compare and exchange");
    const bool equal = value_.compare_exchange_strong(expected, value);
    noted(expected);
    return equal;
  }
  bool compare_exchange_weak(T& expected, T value, order = order::seq_cst, order = order::seq_cst) {
    return compare_exchange_strong(expected, value);
  }

  /// The value, without a step. For checks that other threads cannot disturb.
  T peek() const { return value_.load(); }

  /// Waits until the value is not `old`.
  void await_other_than(T old) const {
    await_turn({"wait for another value of", "atomic", {access{this, false}}},
               [&] { return value_.load() != old; });
  }

 private:
  void change(const char* how) { await_turn({how, "atomic", {access{this, true}}}); }
  static T noted(T value) {
    if constexpr (std::is_integral_v<T>) note(static_cast<long long>(value));
    return value;
  }

  std::atomic<T> value_{};
};

/// An event that happens once and stays set.
class explored_event {
 public:
  void set() {
    const std::lock_guard hold(mutex_);
    has_happened_ = true;
    happens_.notify_all();
  }
  void wait() {
    std::unique_lock hold(mutex_);
    while (!has_happened_) happens_.wait(hold);
  }

 private:
  explored_mutex mutex_{"event"};
  explored_condition happens_;
  bool has_happened_ = false;
};

}  // namespace rondo::test
