// Locks, atomics and conditions that hand control to the explorer before each use. Outside of an exploration they work
// as others do.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  explicit explored_mutex(const char* sort = "mutex") noexcept : sort_(sort) { step_in_memory::begin(this); }
  explored_mutex(const explored_mutex&) = delete;
  explored_mutex& operator=(const explored_mutex&) = delete;

  void lock() {
    const unwatched here;
    await_turn({"lock", sort_, {access{this, true}}}, [this] { return !held_; });
    lock_at_once();
  }
  bool try_lock() {
    const unwatched here;
    await_turn({"try to lock", sort_, {access{this, true}}});
    if (!mutex_.try_lock()) return false;
    held_ = true;
    step_in_memory::acquire_lock(this);
    return true;
  }
  /// Takes the lock within a step that has already waited until it was free.
  void lock_at_once() noexcept {
    const unwatched here;
    mutex_.lock();
    held_ = true;
    step_in_memory::acquire_lock(this);
  }
  void unlock() {
    const unwatched here;
    if (!std::exchange(held_, false)) return;  // with planted mistakes it may not be held
    step_in_memory::release_lock(this);
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

/// A lock of the library.
template <lock_rank Rank>
class ranked_mutex : public explored_mutex {
 public:
  ranked_mutex() noexcept : explored_mutex(name_of(Rank)) {}

  void lock() {
    const unwatched here;
    explored_mutex::lock();
    held_locks::add(Rank, this);
    if (planted.not_locked == Rank) unlock();
  }
  bool try_lock() {
    const unwatched here;
    const bool is_taken = explored_mutex::try_lock();
    if (is_taken) held_locks::add(Rank, this);
    return is_taken;
  }
  void lock_at_once() {
    const unwatched here;
    explored_mutex::lock_at_once();
    held_locks::add(Rank, this);
  }
  void unlock() {
    const unwatched here;
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
    const unwatched here;
    if (!is_exploring()) return woken_.wait(hold);
    sleep(*hold.mutex(), std::nullopt);
  }
  template <class Lock>
  std::cv_status wait_until(Lock& hold, time_point until) {
    const unwatched here;
    if (!is_exploring()) return woken_.wait_until(hold, until);
    return sleep(*hold.mutex(), until);
  }

  void notify_one() {
    const unwatched here;
    if (planted.not_notified) return;
    await_turn({"notify", "condition", {access{this, true}}});
    if (!waiting_.empty()) wake_first();
    woken_.notify_one();
  }
  void notify_all() {
    const unwatched here;
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
  using order = std::memory_order;

  explored_atomic() noexcept : explored_atomic(T{}) {}
  explored_atomic(T value) noexcept : latest_(value) { step_in_memory::begin(this); }
  explored_atomic(const explored_atomic&) = delete;
  explored_atomic& operator=(const explored_atomic&) = delete;

  T load(order o = order::seq_cst) const {
    if (!is_step()) return latest_.load();
    const unwatched here;
    await_turn({"load", "atomic", {access{this, false}}});
    if (!is_weak_step()) return noted(latest_.load());
    watch_atomic(this, sizeof latest_, false, __builtin_return_address(0));
    return noted(as_value(step_in_memory::load(this, as_word(latest_.load()), o)));
  }
  void store(T value, order o = order::seq_cst) {
    const unwatched here;
    if (before_store) std::exchange(before_store, nullptr)();
    change("store");
    if (!is_weak_step()) return latest_.store(noted(value));
    watch_atomic(this, sizeof latest_, true, __builtin_return_address(0));
    word latest = as_word(latest_.load());
    step_in_memory::store(this, latest, as_word(noted(value)), o);
    latest_.store(as_value(latest));
  }
  T exchange(T value, order o = order::seq_cst) {
    return update(
        "exchange", [=](T) { return value; }, o);
  }
  T fetch_add(T more, order o = order::seq_cst) {
    return update(
        "add to", [=](T found) { return static_cast<T>(found + more); }, o);
  }
  T fetch_sub(T less, order o = order::seq_cst) {
    return update(
        "subtract from", [=](T found) { return static_cast<T>(found - less); }, o);
  }
  T fetch_and(T bits, order o = order::seq_cst) {
    return update(
        "clear bits of", [=](T found) { return static_cast<T>(found & bits); }, o);
  }
  bool compare_exchange_strong(T& expected, T value, order success, order failure) {
    const unwatched here;
    change("compare and exchange");
    if (!is_weak_step()) {
      const bool equal = latest_.compare_exchange_strong(expected, value);
      noted(expected);
      return equal;
    }
    watch_atomic(this, sizeof latest_, true, __builtin_return_address(0));
    word latest = as_word(latest_.load());
    word found = as_word(expected);
    const bool equal =
        step_in_memory::compare_exchange(this, latest, found, as_word(value), success, failure);
    latest_.store(as_value(latest));
    expected = noted(as_value(found));
    return equal;
  }
  bool compare_exchange_strong(T& expected, T value, order o = order::seq_cst) {
    const order failure = o == order::acq_rel ? order::acquire : o == order::release ? order::relaxed : o;
    return compare_exchange_strong(expected, value, o, failure);
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) {
    return compare_exchange_strong(expected, value, orders...);
  }

  /// The latest value, without a step. For checks that other threads cannot disturb.
  T peek() const {
    const unwatched here;
    return latest_.load();
  }

  /// Waits until the latest value is not `old`.
  void await_other_than(T old) const {
    const unwatched here;
    await_turn({"wait for another value of", "atomic", {access{this, false}}}, [&] { return peek() != old; });
  }

 private:
  using word = step_in_memory::word;

  void change(const char* how) { await_turn({how, "atomic", {access{this, true}}}); }
  template <class Change>
  T update(const char* how, Change&& changed, order o) {
    const unwatched here;
    change(how);
    if (!is_weak_step()) {
      T found = latest_.load();
      while (!latest_.compare_exchange_weak(found, changed(found))) {
      }
      return noted(found);
    }
    watch_atomic(this, sizeof latest_, true, __builtin_return_address(0));
    word latest = as_word(latest_.load());
    const word found = step_in_memory::update(
        this, latest, [&](word bits) { return as_word(changed(as_value(bits))); }, o);
    latest_.store(as_value(latest));
    return noted(as_value(found));
  }

  static T noted(T value) {
    if constexpr (std::is_integral_v<T>) note(static_cast<long long>(value));
    return value;
  }
  static word as_word(T value) noexcept {
    word bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T as_value(word bits) noexcept {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  std::atomic<T> latest_;  // the last value in modification order
};

/// A fence: no step that others could depend on.
inline void explored_fence(std::memory_order o) {
  await_turn({"fence", "", {}});
  step_in_memory::fence(o);
}

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
