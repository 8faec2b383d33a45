// A scheduler under the explorer, for what is built on top of schedulers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <rondo/scheduler.hpp>

#include "interleavings/explored_core.hpp"

namespace rondo::test {

/// A core for those who want a scheduler. A scenario drives it with passes.
class explored_scheduler final : public scheduler {
 public:
  explicit explored_scheduler(options o = {.buckets = 2})
      : explored_scheduler(std::make_shared<explored_core>(std::move(o), false)) {}

  explored_core& core() { return core_; }

 private:
  explicit explored_scheduler(const std::shared_ptr<explored_core>& core) : scheduler(core), core_(*core) {}

  explored_core& core_;  // which the scheduler keeps
};

/// A task of a timer. One run is in progress at a time, and none begins when the timer has been cancelled.
class watched_task {
 public:
  /// The callable. Calls inside() in each run.
  template <class Inside>
  auto callable(Inside inside) {
    const auto owned = std::make_shared<int>();
    alive_ = owned;
    return [this, owned, inside] { run(inside); };
  }
  auto callable() {
    return callable([] {});
  }
  /// A callable that owns nothing.
  auto bytes() {
    return [this] { run([] {}); };
  }

  bool is_destroyed() const { return alive_.expired(); }
  /// To be called when a call has returned `cancelled`.
  void is_cancelled() {
    cancelled_.store(true, std::memory_order_relaxed);
    expect(is_destroyed(), "the callable of a cancelled timer is destroyed");
  }
  /// To be called when a call has ended the timer and waited.
  void is_over() const {
    expect(running_.load(std::memory_order_relaxed) == 0, "no run is in progress of what was waited for");
    expect(is_destroyed(), "the callable of what was waited for is destroyed");
  }
  /// To be called when the threads are done.
  std::uint64_t runs() const { return runs_; }

 private:
  template <class Inside>
  void run(const Inside& inside) {
    expect(!cancelled_.load(std::memory_order_relaxed),
           "a task does not start when its timer has been cancelled");
    expect(running_.fetch_add(1, std::memory_order_relaxed) == 0,
           "one run of a timer is in progress at a time");
    ++runs_;
    inside();
    running_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::weak_ptr<int> alive_;
  explored_atomic<int> running_;
  explored_atomic<bool> cancelled_;
  std::uint64_t runs_ = 0;
};

}  // namespace rondo::test
