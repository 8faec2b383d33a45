// The points of schedules, and which of them a dispatcher runs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <rondo/durable.hpp>

namespace rondo::durable::detail {

/// All points are whole microseconds, as the database keeps no more.
struct schedule_rule {
  std::string text;
  /// The first point later than `after`. `since` is a point of the schedule, or where it begins; it is not later than
  /// `after`. Returns std::nullopt if there is none before the end of the clock.
  std::function<std::optional<wall_time>(wall_time since, wall_time after)> next;
  /// The point that counts in place of one which was found with other zone data; the same one, if that is a point now.
  std::function<wall_time(wall_time point)> present = std::identity();
};

struct schedule_access {
  static schedule make(schedule_rule rule) {
    return schedule(std::make_shared<const schedule_rule>(std::move(rule)));
  }
  static const schedule_rule& rule_of(const schedule& s) noexcept { return *s.rule_; }
};

/// The schedule with that text. Throws as every() and cron() do, and std::invalid_argument if there is none.
schedule schedule_of(const std::string& text);

/// The first point of a task that is declared now, or std::nullopt.
std::optional<wall_time> first_point(const schedule& s, wall_time now);

/// The point that comes after this one, which may have been found with other zone data; or std::nullopt.
std::optional<wall_time> next_point(const schedule& s, wall_time point);

/// The point that a task runs for, or that it waits for, if `point` was to run. Returns another point only if `point` was found
/// with other zone data, or if points have gone by, which are handled as `missed` says. Returns std::nullopt if that leaves
/// none. Takes at most about 60 steps of the schedule, however many points have gone by.
std::optional<wall_time> point_to_run(const schedule& s, missed_points missed, wall_time point, wall_time now,
                                      duration window);

}  // namespace rondo::durable::detail
