// Executors: where tasks run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <rondo/export.hpp>
#include <rondo/job.hpp>

namespace rondo {

/// Where tasks run. Only the driver calls it, once for each run, with a job that may be called on any thread, at
/// once or later. It must not block, nor wait for the job, as all other timers wait meanwhile: a pool that is full had
/// better drop it (options::on_rejected). A checked build tells of one that blocks for a second. If it throws, that is reported to
/// `on_error` and counted as failed, and the run is over even if the executor kept the job.
using executor = std::function<void(job)>;

/// What one timer has besides its deadline and its task:
///
///     timer.schedule_every(1min, write_report, {.run_on = pool, .name = "report"});
///
/// A timer with either takes one more allocation. Both are destroyed with the timer's callable. New members are only
/// ever appended.
struct timer_options {
  /// Runs this timer's tasks in place of `options::run_on`, so that a slow task does not delay the others. Empty: that
  /// one does. (Where that is an executor, `[](job j) { j(); }` runs a timer inline, on the driver.)
  executor run_on = {};
  /// The name under which handlers, stop(), list() and dump() show the timer. Any text; it need not be unique.
  std::string name = {};
};

/// An executor that several timers share, each of which may be given it as its options:
///
///     const on workers(pool);
///     timer.schedule_every(1min, write_report, workers);
///
/// Copies, and the options made of them, share the executor: it is never copied, and is destroyed with the last of them
/// and the callables of the timers that use it.
class RONDO_EXPORT on {
 public:
  /// Null: std::invalid_argument.
  explicit on(executor where);
  /// Options with this executor, and no name. Throws std::bad_alloc.
  operator timer_options() const;

 private:
  std::shared_ptr<const executor> where_;
};

}  // namespace rondo
