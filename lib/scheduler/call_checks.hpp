// When checked builds verify a scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <rondo/detail/checks.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// The calls of one scheduler.
class call_checks {
 public:
  void begin() noexcept {
    in_progress_.fetch_add(1);
    begun_.fetch_add(1);  // after that: see alone_during()
  }
  void end() noexcept { in_progress_.fetch_sub(1); }

  /// Calls check() unless a call other than this one is in progress. Returns true if none was in progress until check()
  /// returned.
  template <class Check>
  bool alone_during(Check&& check) {
    const std::uint64_t begun = begun_.load();
    if (in_progress_.load() != 1) return false;
    check();
    return begun_.load() == begun;  // a call that is about to begin has done nothing yet
  }

  /// Whether the calls so far have paid for this many steps. If so, the steps are spent.
  bool enough_for(std::size_t steps) noexcept {
    if (paid_.fetch_add(check_steps_per_call) + check_steps_per_call < steps) return false;
    paid_.store(0);
    return true;
  }

 private:
  sync::atomic<std::uint64_t> begun_{0};
  sync::atomic<std::size_t> in_progress_{0};
  sync::atomic<std::size_t> paid_{0};
};

/// One call by the user. When it ends, a checked build verifies the scheduler; other builds do nothing.
template <class Core, bool = checks>
class checked_call {
 public:
  checked_call(const std::shared_ptr<Core>&, const char*) noexcept {}
  ~checked_call() {}  // NOLINT(modernize-use-equals-default): so that no compiler reports it as unused
};

template <class Core>
class checked_call<Core, true> {
 public:
  checked_call(const std::shared_ptr<Core>& core, const char* name) noexcept : core_(core), name_(name) {
    core_->begin_call();
  }
  ~checked_call() { core_->end_call(name_); }
  checked_call(const checked_call&) = delete;
  checked_call& operator=(const checked_call&) = delete;

 private:
  const std::shared_ptr<Core> core_;  // the call may destroy the scheduler
  const char* const name_;
};

}  // namespace rondo::detail
