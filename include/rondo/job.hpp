// One run of a task, as executors get it.
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
  duration lateness{};  // as it was submitted
  std::uint64_t run = 0;
  std::uint64_t missed = 0;
};

/// What jobs call in a scheduler; outlives the scheduler as long as there are jobs.
class job_host {
 public:
  virtual ~job_host() = default;
  virtual void start(const job_ticket&) noexcept = 0;
  virtual void drop(const job_ticket&) noexcept = 0;
};

}  // namespace detail

/// One run of a task, handed to an executor. Call it once, as `job()`, on any thread, at once or later: it runs the
/// task, and never throws. It does nothing if the timer has been cancelled or rescheduled or its scheduler stopped,
/// and it may outlive the scheduler. A job that is destroyed uncalled is a run that does not happen, and counts as
/// rejected. Move-only. A job that was called or moved from is spent.
class RONDO_EXPORT job {
 public:
  /// Makes a spent job.
  job() noexcept = default;
  /// For schedulers.
  job(std::shared_ptr<detail::job_host> host, const detail::job_ticket& ticket) noexcept;
  ///@{
  /// Takes the run over; the other job is spent afterwards. The run that this one held before is dropped, as by the
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
