// What checked builds do: they verify a scheduler when none of its calls is in progress, and report mistakes of users
// that cannot be prevented.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <rondo/detail/checks.hpp>
#include <rondo/firing.hpp>
#include <rondo/time.hpp>

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
    // A call that is about to begin has done nothing yet. (No load: it might be early, and miss a call that check() has seen.
    // What begins after this modification sees it, and so comes after check().)
    return begun_.fetch_add(0) == begun;
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

/// After this much real time, a checked build reports that a call is waiting, perhaps forever.
inline constexpr duration suspicious_wait = std::chrono::seconds(5);
/// An executor that takes this long is blocking: it should only pass a job on.
inline constexpr duration suspicious_executor_call = std::chrono::seconds(1);

/// Writes one line to std::cerr.
void warn_of_wait(const char* call) noexcept;

/// Called when a task runs on this thread.
void count_run_on_this_thread() noexcept;

/// One call of an executor. An executor that runs the job itself before it returns may take as long as the task.
class watched_executor_call {
 public:
  watched_executor_call() noexcept;
  /// Called when the executor has returned. Writes one line to std::cerr if it took too long.
  void check(const firing&) const noexcept;

 private:
  const time_point begin_;  // in real time
  const std::uint64_t runs_;
};

}  // namespace rondo::detail
