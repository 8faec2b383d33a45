// Mistakes of users that cannot be prevented. Checked builds report them.
#pragma once

#include <chrono>
#include <cstdint>

#include <rondo/firing.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

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
