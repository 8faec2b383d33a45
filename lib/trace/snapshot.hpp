// What was in a trace at one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

#include "trace/recorder.hpp"
#include "trace/ring.hpp"

namespace rondo::detail {

/// The events of a ring, readable.
struct snapshot {
  struct event {
    traced what;
    std::uint32_t scheduler;
    std::uint32_t clock;  // 0: the steady clock; otherwise the scheduler whose virtual time it is
    std::uint32_t thread;
    time_point begin;
    time_point end;  // time_point::max() while it is in progress
    woken why;       // of a pass
    // Of all others:
    std::size_t timer;  // where it is in `timers`
    std::uint64_t run;
    std::uint64_t count;  // of points
    time_point due;
    time_point from;  // as recorder::run() says

    bool takes_time() const noexcept { return what <= traced::hand_over; }
    bool is_run() const noexcept { return what == traced::run || what == traced::job; }
    duration lateness() const noexcept { return saturating_difference(begin, due); }
  };
  struct timer {
    timer_id id;
    std::string name;
  };

  /// Throws std::bad_alloc.
  explicit snapshot(const trace_ring&);

  std::vector<event> events;  // in the order in which they began; of one thread, exactly
  std::vector<timer> timers;
  std::map<std::uint32_t, std::string> schedulers;  // their names
  bool is_complete = false;                         // no event was lost

 private:
  void add(const trace_ring::event&, std::string_view name, std::map<timer_id, std::size_t>& known);
};

}  // namespace rondo::detail
