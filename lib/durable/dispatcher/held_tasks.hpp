// Claimed tasks whose run has not begun.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "durable/dispatcher/run.hpp"

namespace rondo::durable::detail {

/// Some wait on the wheel. The others are due, in the order in which they became due. All members may be called from
/// any thread.
class held_tasks {
 public:
  using place = run_list::iterator;  // how the wheel refers to a run

  /// Takes the only run of `one`. It stays where it is until came_due() or take_back().
  place add_waiting(run_list& one) noexcept {
    const std::lock_guard hold(mutex_);
    waiting_.splice(waiting_.end(), one);
    return std::prev(waiting_.end());
  }

  void add_due(run_list& one) noexcept {
    const std::lock_guard hold(mutex_);
    due_.splice(due_.end(), one);
  }

  /// The wheel calls this when a run becomes due. O(1).
  void came_due(place p) noexcept {
    const std::lock_guard hold(mutex_);
    due_.splice(due_.end(), waiting_, p);
  }

  /// Takes back a waiting run for which the wheel got no timer.
  run_list take_back(place p) noexcept {
    const std::lock_guard hold(mutex_);
    run_list one;
    one.splice(one.end(), waiting_, p);
    return one;
  }

  /// Takes the runs that have been due for longest, at most `most`.
  run_list take_due(std::size_t most) noexcept {
    const std::lock_guard hold(mutex_);
    run_list taken;
    const auto n = static_cast<run_list::difference_type>(std::min(most, due_.size()));
    taken.splice(taken.end(), due_, due_.begin(), std::next(due_.begin(), n));
    return taken;
  }

  /// Takes the due runs whose lease runs out before `t`. (Leases are counted from when tasks become due. Apart from the
  /// time that a claim takes, they run out in the order of the list.)
  run_list take_due_with_lease_before(time_point t) noexcept {
    const std::lock_guard hold(mutex_);
    const auto end = std::ranges::find_if(due_, [&](const run& r) { return r.lease_until >= t; });
    run_list taken;
    taken.splice(taken.end(), due_, due_.begin(), end);
    return taken;
  }

  /// Takes all runs. The wheel must not refer to any of them afterwards.
  run_list take_all() noexcept {
    const std::lock_guard hold(mutex_);
    run_list taken = std::move(due_);
    taken.splice(taken.end(), waiting_);
    due_.clear();
    return taken;
  }

  std::size_t size() const noexcept {
    const std::lock_guard hold(mutex_);
    return waiting_.size() + due_.size();
  }

  bool any_due() const noexcept {
    const std::lock_guard hold(mutex_);
    return !due_.empty();
  }

  /// The tickets of all runs. Throws std::bad_alloc.
  std::vector<ticket> tickets() const {
    const std::lock_guard hold(mutex_);
    std::vector<ticket> all;
    for (const run_list* list : {&waiting_, &due_})
      for (const run& r : *list) all.push_back(r.of());
    return all;
  }

 private:
  mutable std::mutex mutex_;
  run_list waiting_, due_;
};

}  // namespace rondo::durable::detail
