// One run of a task, as an executor receives it.
#pragma once

#include <cstdint>
#include <memory>

#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {

/// Identifies the run of a timer that a job represents.
struct job_ticket {
  std::uint32_t slot = 0;    // of the timer's record
  std::uint64_t number = 0;  // unique among the runs of the scheduler
  time_point due;
  duration lateness{};  // when it was submitted
  std::uint64_t run = 0;
  std::uint64_t missed = 0;
};

/// The part of a scheduler that jobs call. It outlives the scheduler as long as there are jobs.
class job_host {
 public:
  virtual ~job_host() = default;
  virtual void start(const job_ticket&) noexcept = 0;
  virtual void drop(const job_ticket&) noexcept = 0;
};

}  // namespace detail

/// One run of a task, passed to an executor. Call it once, as `job()`, on any thread, at once or later: it runs the
/// task and never throws. It does nothing if the timer has been cancelled or rescheduled, or if its scheduler has been
/// stopped. It may outlive the scheduler. If a job is destroyed without being called, the run does not happen and
/// counts as rejected, unless it had already been cancelled or taken back. Move-only. A job is *spent* after it was
/// called or moved from.
class RONDO_EXPORT job {
 public:
  /// Creates a spent job.
  job() noexcept = default;
  /// For use by schedulers.
  job(std::shared_ptr<detail::job_host> host, const detail::job_ticket& ticket) noexcept;
  ///@{
  /// Takes over the run; the other job is spent afterwards. The run that this job held before is dropped, as by the
  /// destructor.
  job(job&&) noexcept = default;
  job& operator=(job&&) noexcept;
  ///@}
  /// Drops the run, unless the job is spent.
  ~job();

  /// Runs the task before it returns; the job is spent afterwards. A spent job does nothing.
  void operator()() noexcept;

 private:
  void drop() noexcept;

  std::shared_ptr<detail::job_host> host_;  // null: spent
  detail::job_ticket ticket_;
};

}  // namespace rondo
