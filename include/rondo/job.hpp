// What an executor gets.
#pragma once

#include <cstdint>
#include <memory>

#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {

/// Which run of which timer a job stands for.
struct job_ticket {
  void* record = nullptr;
  std::uint64_t number = 0;  // no other run of the scheduler has it
  time_point due;
  std::uint64_t run = 0;
  std::uint64_t missed = 0;
};

/// The side of a scheduler that jobs talk to; outlives it as long as there are jobs.
class job_host {
 public:
  virtual ~job_host() = default;
  virtual void start(const job_ticket&) noexcept = 0;
  virtual void drop(const job_ticket&) noexcept = 0;
};

}  // namespace detail

/// One run of a task, handed to an executor. Call it once, as `job()`, on any thread and at any later time:
/// that runs the task, and never throws. It does nothing if the timer was cancelled or rescheduled or its
/// scheduler stopped in the meantime, and it may outlive the scheduler. Destroyed without having been called
/// it is a run that did not happen, counted as rejected. Move-only; a moved-from job is spent.
class RONDO_EXPORT job {
 public:
  /// Spent from the beginning.
  job() noexcept = default;
  /// For schedulers.
  job(std::shared_ptr<detail::job_host> host, const detail::job_ticket& ticket) noexcept;
  ///@{
  /// The other one is spent afterwards. What this one held before is as if destroyed.
  job(job&&) noexcept = default;
  job& operator=(job&&) noexcept;
  ///@}
  /// Unless it is spent, its run does not happen.
  ~job();

  /// Runs the task, here and now; spent afterwards. If it is spent already: nothing.
  void operator()() noexcept;

 private:
  void drop() noexcept;

  std::shared_ptr<detail::job_host> host_;  // null: spent
  detail::job_ticket ticket_;
};

}  // namespace rondo
