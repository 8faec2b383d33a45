// Operations that wait for an event or a timeout: a write for enough replicas, a long poll for new records, a transfer for
// two locks.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <rondo/scheduler.hpp>
#include <rondo/timer_scope.hpp>

enum class outcome { completed, timed_out };

/// An operation is registered under several keys and tried whenever one of them has changed, until it is completed or its
/// timeout comes. It ends exactly once, and then nothing of it is left. All members may be called from any thread, and from
/// `on_end`. The destructor drops the operations that still wait.
template <class Key>
class waiting_operations {
 public:
  explicit waiting_operations(rondo::scheduler& timers) : timeouts_(timers) {}

  /// Calls `try_it` now and whenever a key has changed, until it returns true, and then `on_end`. The calls of one
  /// operation's `try_it` follow one another; it must not use this object, and what it reads is changed before changed() is
  /// called. If the scheduler takes no timer, throws what it throws, and registers nothing. If `try_it` throws, the caller
  /// gets that, and the operation waits on.
  void submit(const std::vector<Key>& keys, rondo::duration timeout, std::function<bool()> try_it,
              std::function<void(outcome)> on_end) {
    const auto op = std::make_shared<operation>();
    op->try_it = std::move(try_it);
    op->on_end = std::move(on_end);
    {
      const std::lock_guard hold(op->mutex);  // whoever finds it waits until it is complete
      try {
        watch(op, keys);
        op->timeout = timeouts_.schedule_after(timeout, [this, op] { time_out(*op); });
      } catch (...) {
        forget(*op);
        throw;
      }
    }
    try_to_complete(*op);  // only now, so that no change is overlooked
  }

  /// Tries the operations that wait for `key`. Returns how many of them it has completed. If calls of theirs throw, throws
  /// what the first of these has thrown, after it has tried them all.
  std::size_t changed(const Key& key) {
    std::size_t completed = 0;
    std::exception_ptr thrown;
    for (const auto& op : waiting_for(key)) {
      try {
        if (try_to_complete(*op)) ++completed;
      } catch (...) {
        if (thrown == nullptr) thrown = std::current_exception();
      }
    }
    if (thrown != nullptr) std::rethrow_exception(thrown);
    return completed;
  }

  /// How many registrations there are, under all keys.
  std::size_t registrations() const {
    const std::lock_guard hold(mutex_);
    return waiting_.size();
  }

 private:
  struct operation;
  using by_key = std::multimap<Key, std::shared_ptr<operation>>;

  struct operation {
    std::mutex mutex;  // locked before the map's
    std::function<bool()> try_it;
    std::function<void(outcome)> on_end;
    bool ended = false;
    rondo::timer_id timeout;
    std::vector<typename by_key::iterator> places;
  };

  bool try_to_complete(operation& op) {
    {
      const std::lock_guard hold(op.mutex);
      if (op.ended || !op.try_it()) return false;
      forget(op);
    }
    timeouts_.cancel(op.timeout);  // if it has just come, it finds that the operation has ended
    op.on_end(outcome::completed);
    return true;
  }

  void time_out(operation& op) {
    {
      const std::lock_guard hold(op.mutex);
      if (op.ended) return;
      forget(op);
    }
    op.on_end(outcome::timed_out);
  }

  // Precondition of both: the operation is locked.

  void watch(const std::shared_ptr<operation>& op, const std::vector<Key>& keys) {
    op->places.reserve(keys.size());
    const std::lock_guard hold(mutex_);
    for (const Key& key : keys) op->places.push_back(waiting_.emplace(key, op));
  }

  void forget(operation& op) noexcept {
    op.ended = true;
    const std::lock_guard hold(mutex_);
    for (const auto place : op.places) waiting_.erase(place);
    op.places.clear();
  }

  std::vector<std::shared_ptr<operation>> waiting_for(const Key& key) const {
    const std::lock_guard hold(mutex_);
    std::vector<std::shared_ptr<operation>> found;
    for (auto [place, end] = waiting_.equal_range(key); place != end; ++place) found.push_back(place->second);
    return found;
  }

  mutable std::mutex mutex_;
  by_key waiting_;
  rondo::timer_scope timeouts_;  // the last member: its destructor waits for timeouts in progress
};
