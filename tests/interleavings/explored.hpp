// Locks, atomics and conditions that hand control to the explorer before each use.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

#include "interleavings/explorer.hpp"

namespace rondo::test {

class explored_mutex {
 public:
  explicit explored_mutex(const char* sort = "mutex") noexcept : sort_(sort) {}
  explored_mutex(const explored_mutex&) = delete;
  explored_mutex& operator=(const explored_mutex&) = delete;

  void lock() {
    await_turn({"lock", sort_, {access{this, true}}}, [this] { return !held_; });
    held_ = true;
  }
  /// Takes the lock within a step that has already waited until it was free.
  void lock_at_once() noexcept { held_ = true; }
  void unlock() {
    if (std::exchange(held_, false)) note_released(this);  // with planted bugs it may not be held
  }

  bool held() const noexcept { return held_; }
  const char* sort() const noexcept { return sort_; }

 private:
  const char* sort_;
  bool held_ = false;
};

/// Wakes threads in the order in which they began to wait.
class explored_condition {
 public:
  explored_condition() noexcept = default;
  explored_condition(const explored_condition&) = delete;
  explored_condition& operator=(const explored_condition&) = delete;

  template <class Lock>
  void wait(Lock& hold) {
    sleep(*hold.mutex(), std::nullopt);
  }
  template <class Lock>
  std::cv_status wait_until(Lock& hold, time_point until) {
    return sleep(*hold.mutex(), until);
  }

  void notify_one() {
    await_turn({"notify", "condition", {access{this, true}}});
    if (!waiting_.empty()) wake_first();
  }
  void notify_all() {
    await_turn({"notify all", "condition", {access{this, true}}});
    while (!waiting_.empty()) wake_first();
  }

 private:
  struct waiter {
    std::size_t thread;
    bool is_timed;
    bool notified;
  };

  std::cv_status sleep(explored_mutex& mutex, std::optional<time_point> until) {
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
};

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
    return noted(value_);
  }
  void store(T value, order = order::seq_cst) {
    change("store");
    value_ = noted(value);
  }
  T exchange(T value, order = order::seq_cst) {
    change("exchange");
    return noted(std::exchange(value_, value));
  }
  T fetch_add(T more, order = order::seq_cst) {
    change("add to");
    return noted(std::exchange(value_, static_cast<T>(value_ + more)));
  }
  T fetch_sub(T less, order = order::seq_cst) {
    change("subtract from");
    return noted(std::exchange(value_, static_cast<T>(value_ - less)));
  }
  bool compare_exchange_strong(T& expected, T value, order = order::seq_cst, order = order::seq_cst) {
    change("compare and exchange");
    const T old = noted(value_);
    const bool equal = old == expected;
    (equal ? value_ : expected) = equal ? value : old;
    return equal;
  }
  bool compare_exchange_weak(T& expected, T value, order = order::seq_cst, order = order::seq_cst) {
    return compare_exchange_strong(expected, value);
  }

  /// Waits until the value is not `old`.
  void await_other_than(T old) const {
    await_turn({"wait for another value of", "atomic", {access{this, false}}}, [&] { return value_ != old; });
  }

 private:
  void change(const char* how) { await_turn({how, "atomic", {access{this, true}}}); }
  static T noted(T value) {
    if constexpr (std::is_integral_v<T>) note(static_cast<long long>(value));
    return value;
  }

  T value_{};
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

template <const char* Sort>
struct explored_mutex_of : explored_mutex {
  explored_mutex_of() noexcept : explored_mutex(Sort) {}
};

/// A policy like detail::threads.
struct explored {
  static constexpr char stripe[] = "stripe";
  static constexpr char queue[] = "queue";
  static constexpr char record[] = "record";
  static constexpr char shard[] = "shard";
  static constexpr char depot[] = "depot";
  static constexpr char list[] = "list";
  static constexpr char waiting[] = "waiting";

  using stripe_mutex = explored_mutex_of<stripe>;
  using queue_mutex = explored_mutex_of<queue>;
  using record_mutex = explored_mutex_of<record>;
  using shard_mutex = explored_mutex_of<shard>;
  using depot_mutex = explored_mutex_of<depot>;
  using list_mutex = explored_mutex_of<list>;

  using waiting_mutex = explored_mutex_of<waiting>;
  using condition = explored_condition;

  template <class T>
  using atomic = explored_atomic<T>;

  static constexpr std::size_t stripes = 2;                    // even and odd ticks
  static constexpr std::uint32_t redistributed_at_a_time = 1;  // so that it is always interrupted

  // No thread has its own shard, so that each use of a shard is a step.
  static constexpr std::size_t own_shards = 0;
  static constexpr std::size_t shared_shards = 1;
  static constexpr bool drops_pages = false;  // explored objects must not lose their memory

  /// The scenario's threads come first, then the thread that prepares and checks.
  static std::size_t thread_number() noexcept { return this_thread(); }
};

}  // namespace rondo::test
