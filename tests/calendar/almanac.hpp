// Calendars on virtual time, for the tests.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "calendar/times.hpp"
#include "scheduler/virtual_time.hpp"

namespace calendar_test {

using namespace rondo::test;

/// Virtual time, a wall clock that follows it, and timers of that clock. Notes what ran as "what@when", in the wall
/// clock's UTC.
struct place {
  explicit place(const std::string& start, rondo::options o = {})
      : time(std::move(o)), wall(time, utc(start)), timers(std::in_place, time, wall) {}

  auto noting(std::string what) {
    return [this, what = std::move(what)](const wall_firing& f) {
      ran.add(what + '@' + text(wall.now()));
      runs.push_back(f);
    };
  }
  /// Lets time pass until the wall clock shows `when`.
  void advance_to(const std::string& when) { time.advance(utc(when) - wall.now()); }

  manual_timer time;
  manual_wall_clock wall;
  std::optional<calendar_timers> timers;
  journal ran;
  std::vector<wall_firing> runs;
};

}  // namespace calendar_test
