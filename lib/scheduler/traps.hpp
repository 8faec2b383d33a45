// Mistakes of users that cannot be prevented: checked builds tell of them.
#pragma once

#include <chrono>
#include <cstdint>

#include <rondo/firing.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// After so much real time a checked build tells that a call waits: perhaps for ever.
inline constexpr duration suspicious_wait = std::chrono::seconds(5);
/// An executor that takes so long blocks: it was only to pass a job on.
inline constexpr duration suspicious_executor_call = std::chrono::seconds(1);

/// One line on std::cerr.
void warn_of_wait(const char* call) noexcept;

/// A task runs on this thread.
void count_run_on_this_thread() noexcept;

/// One call of an executor. One that runs the job itself, before it returns, may take as long as the task.
class watched_executor_call {
 public:
  watched_executor_call() noexcept;
  /// It has returned: says on std::cerr, in one line, if it took too long.
  void check(const firing&) const noexcept;

 private:
  const time_point begin_;  // in real time
  const std::uint64_t runs_;
};

}  // namespace rondo::detail
