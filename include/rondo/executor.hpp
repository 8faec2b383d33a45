// Executors: where tasks run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <rondo/export.hpp>
#include <rondo/job.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// Where tasks run. Only the driver calls an executor, once for each run, with a job that may be called on any thread,
/// at once or later. An executor must not block or wait for the job, because all other timers wait while it does: a
/// full pool should drop the job (see options::on_rejected). A checked build reports an executor that blocks for a
/// second. If an executor throws, the exception is reported to `on_error` and counted in statistics::failed, and the
/// run is over even if the executor kept the job.
using executor = std::function<void(job)>;

/// Settings of a single timer, in addition to its deadline and its task:
///
///     timer.schedule_every(1min, write_report, {.run_on = pool, .name = "report"});
///
/// A timer with an executor, a name or slack takes one more allocation. They are destroyed with the timer's callable. New
/// members are always appended.
struct timer_options {
  /// Runs this timer's tasks instead of `options::run_on`, so that a slow task does not delay the others. If empty,
  /// `options::run_on` is used. (Where that is an executor, `[](job j) { j(); }` runs a timer inline, on the driver.)
  executor run_on = {};
  /// The name by which handlers, stop(), list() and dump() show the timer. Any text; it need not be unique.
  std::string name = {};
  /// How much later than its deadline a run may start, so that timers share wake-ups: of the ticks that begin in
  /// [deadline, deadline + slack], the timer waits for the one whose number, counted from the scheduler's start, is
  /// divisible by the greatest power of two. If no tick begins there, slack has no effect. The deadline stays what it is:
  /// for `firing::due` and due(), for the lateness, and for the grid of a periodic timer, whose points pass as without
  /// slack (so a slack longer than the period makes runs miss points). Timers of one tick run in the order in which they
  /// were scheduled, and stop() returns them in the order of the ticks that they wait for. Slack also holds for
  /// reschedule_*(). If it is negative, the call throws std::invalid_argument.
  duration slack = {};
};

/// An executor that several timers share. It converts to the options that each of them is given:
///
///     const on workers(pool);
///     timer.schedule_every(1min, write_report, workers);
///
/// Its copies, and the options made from them, share the executor, which is never copied. It is destroyed when none of
/// them is left and the callables of all timers that use it are destroyed.
class RONDO_EXPORT on {
 public:
  /// Throws std::invalid_argument if `where` is empty.
  explicit on(executor where);
  /// Options with this executor and no name. Throws std::bad_alloc.
  operator timer_options() const;

 private:
  std::shared_ptr<const executor> where_;
};

}  // namespace rondo
