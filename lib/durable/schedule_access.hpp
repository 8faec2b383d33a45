// The points of schedules, and which of them a dispatcher runs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// All points are whole microseconds, as the database keeps no more.
struct schedule_rule {
  std::string text;
  /// The first point later than `after`. `since` is a point of the schedule, or where it begins; it is not later than
  /// `after`. Returns std::nullopt if there is none before the end of the clock.
  std::function<std::optional<zoned_point>(wall_time since, wall_time after)> next;
  /// When the local time of a point is by the zone data of now; the same point, if that has none.
  std::function<zoned_point(const zoned_point&)> present = std::identity();
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
std::optional<zoned_point> first_point(const schedule& s, wall_time now);

/// The point that comes after this one, which may have been found with other zone data; or std::nullopt.
std::optional<zoned_point> next_point(const schedule& s, const zoned_point& point);

/// The point that a task runs for, or that it waits for, if `point` was to run. Returns another point only if `point` was found
/// with other zone data, or if points have gone by, which are handled as `missed` says. Returns std::nullopt if that leaves
/// none. Takes at most about 60 steps of the schedule, however many points have gone by.
std::optional<zoned_point> point_to_run(const schedule& s, missed_points missed, const zoned_point& point,
                                        wall_time now, duration window);

}  // namespace rondo::durable::detail
