// What schedulers did, and why their runs were late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <rondo/export.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

namespace detail {
class trace_ring;
struct trace_access;
}  // namespace detail

/// What schedulers did lately, in a ring of memory. A scheduler whose options name a trace records its passes, with what
/// woke the driver; each run, with its deadline, start, end, thread and name; hand-overs to executors; and what was missed,
/// dropped or rejected. write() draws it, and late() says for each late run why it was late.
///
///     const auto trace = std::make_shared<rondo::trace>();
///     rondo::timer timer({.traced_by = trace});
///     …
///     for (const auto& run : trace->late(10ms)) std::cout << run.name << " waited for " << run.longest_name << '\n';
///
/// - Several schedulers may share a trace; ids and numbers of schedulers tell them apart. A trace may outlive its
///   schedulers, and may be read while they record.
/// - Threads: all members may be called from any thread. Recording takes no lock and allocates nothing.
/// - Cost: a scheduler without a trace pays one branch for each run, and nothing when timers are set or cancelled.
///   With one, a run takes one event, or two if its timer has a name; on an executor, twice as many; a pass takes one.
/// - Of a name, up to 48 bytes are kept, cut between two characters; of options::name, 32.
/// - An event may be missing, uncounted, if its thread was stopped while it recorded until the ring had come round.
class RONDO_EXPORT trace {
 public:
  /// Room for that many events, of 64 bytes each, rounded up to a power of two (and to 2): by default 4 MiB. All memory is
  /// taken here. Throws std::invalid_argument if it is 0, and std::bad_alloc.
  explicit trace(std::size_t events = 65'536);
  ~trace();
  trace(const trace&) = delete;
  trace& operator=(const trace&) = delete;

  /// Writes what was recorded up to the call, and perhaps some of what is being recorded, as JSON in the Trace Event Format.
  /// ui.perfetto.dev and chrome://tracing open it. Each scheduler is a process, with a track for its deadlines, one for its
  /// driver, one for each thread of an executor, and a graph of the lateness. Arrows lead from deadlines to runs. Times are
  /// those of the scheduler's clock; a slice is drawn up to 3 ns shorter than it was, so that viewers which add in floating
  /// point see none overlap. Throws std::bad_alloc, before it writes anything, and what `out` throws.
  void write(std::ostream& out) const;

  /// A run that was late, and what it waited for. The four parts add up to the lateness, and none is negative.
  struct late_run {
    timer_id id = {};       ///< of its timer
    std::string name = {};  ///< that of its timer; empty if it has none
    std::uint64_t run = 0;  ///< as firing::run
    time_point due = {};    ///< its exact deadline
    duration lateness{};    ///< its start − due
    /// Its tick had come, and the driver slept: the system woke it late, or your loop polled late.
    duration woken_late{};
    /// The thread of the driver ran tasks: of this scheduler, or of others that share the trace and the thread. Also: its own
    /// previous run was in progress, on an executor.
    duration behind_tasks{};
    /// It waited in its executor. Before that, also: the driver was inside a call of an executor that took other runs.
    duration in_executor{};
    /// The rest: it waited for its tick, as deadlines are rounded up to ticks, and by its slack; a pass took timers out of the
    /// wheel, or destroyed callables; its deadline had passed when it was set (a manual_timer does not tell); and what
    /// happened before the oldest event in the ring.
    duration in_pass{};
    /// The task that it waited for most, in all its runs while this one waited: on the thread of the driver, or on the
    /// thread of the executor that ran it later. Identifies no timer if there was none.
    timer_id longest = {};
    std::string longest_name = {};  ///< the name of that timer; empty if it has none
  };
  /// The runs that are later than `over`, in the order of their starts. What happened to runs that have not started is not
  /// known. Takes O(n log n) for n events, some milliseconds if the ring is full. Throws std::bad_alloc.
  std::vector<late_run> late(any_duration over) const;

  /// How many events newer ones have replaced.
  std::uint64_t lost() const noexcept;

 private:
  friend struct detail::trace_access;

  std::unique_ptr<detail::trace_ring> ring_;
};

}  // namespace rondo
