// Why runs were late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

#include "trace/snapshot.hpp"
#include "trace/timeline.hpp"

namespace rondo::detail {

/// Splits the lateness of runs. Between the deadline of a run and its start, or its hand-over to an executor, the driver did
/// one thing at a time, on one thread at a time: that of the pass in progress, or else of the next one. Each moment is
/// counted as what that thread did: a task (woken_late if nothing), a call of an executor, or else a pass. The time that is
/// no other part is in_pass.
class lateness {
 public:
  struct parts {
    duration whole{};
    duration woken_late{};
    duration behind_tasks{};
    duration in_executor{};
    duration in_pass{};
    std::size_t longest = tally::nobody;  // the timer that it waited for most, and how long
    duration longest_time{};
  };

  /// Throws std::bad_alloc. The snapshot must outlive it.
  explicit lateness(const snapshot&);

  /// Precondition: is_run(). Throws std::bad_alloc. Fastest if called for runs in the order of the events.
  parts of(const snapshot::event&);

 private:
  using event = snapshot::event;
  using track = std::pair<std::uint32_t, std::uint32_t>;  // a clock, and a thread or a scheduler

  void follow_threads();
  void follow_drivers();
  void wait_for_driver(parts&, timeline& driver, time_point begin, time_point end) const;
  time_point driver_waited_from(const event&) const;
  void wait_for_itself(parts&, timeline& driver, const event& job, time_point begin, time_point end) const;

  const snapshot& all_;
  std::map<std::uint32_t, time_point> latest_;  // of each clock, the last moment that is known
  std::map<track, timeline> threads_;
  std::map<std::uint32_t, timeline> drivers_;    // of each scheduler
  std::vector<std::vector<const event*>> jobs_;  // of each timer, its runs on an executor
  std::map<std::pair<std::size_t, std::uint64_t>, time_point> waited_from_;  // of what was handed over
};

}  // namespace rondo::detail
