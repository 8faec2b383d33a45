// Where tasks run.
#pragma once

#include <functional>
#include <memory>

#include <rondo/export.hpp>
#include <rondo/job.hpp>

namespace rondo {

/// Where tasks run: called by the driver, and by it alone, once for each run, with a job to be called
/// anywhere, at any later time. If it throws, that is reported to `on_error` and counted as failed, and the
/// run is over even if the executor kept the job.
using executor = std::function<void(job)>;

/// An executor for one timer, in place of `options::run_on`:
///
///     timer.schedule_every(1min, write_report, on(pool));
///
/// so that a slow task does not hold up the others. (`on([](job j) { j(); })` runs it inline, on the driver,
/// where the scheduler's other tasks do not.) The executor is destroyed with the timer's callable. Copies share
/// it.
class RONDO_EXPORT on {
 public:
  /// Null: std::invalid_argument.
  explicit on(executor where);
  /// The executor, which all copies share.
  const std::shared_ptr<const executor>& shared() const noexcept { return where_; }

 private:
  std::shared_ptr<const executor> where_;
};

}  // namespace rondo
