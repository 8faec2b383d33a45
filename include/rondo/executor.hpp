// Executors: where tasks run.
#pragma once

#include <functional>
#include <memory>

#include <rondo/export.hpp>
#include <rondo/job.hpp>

namespace rondo {

/// Where tasks run. Only the driver calls it, once for each run, with a job that may be called on any thread, at
/// once or later. It must not wait for that: other timers wait meanwhile. If it throws, that is reported to
/// `on_error` and counted as failed, and the run is over even if the executor kept the job.
using executor = std::function<void(job)>;

/// An executor for one timer, in place of `options::run_on`:
///
///     timer.schedule_every(1min, write_report, on(pool));
///
/// so that a slow task does not delay the others. (Where the scheduler's other tasks run on an executor,
/// `on([](job j) { j(); })` runs a timer inline, on the driver.) Copies share the executor, which is destroyed with the
/// last of them and the callables of the timers that use it.
class RONDO_EXPORT on {
 public:
  /// Null: std::invalid_argument.
  explicit on(executor where);
  /// The executor that all copies share.
  const std::shared_ptr<const executor>& shared() const noexcept { return where_; }

 private:
  std::shared_ptr<const executor> where_;
};

}  // namespace rondo
