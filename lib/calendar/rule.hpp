// Which local times a calendar names, and when they occur.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rondo/calendar.hpp>

namespace date {
class time_zone;
}

namespace rondo::detail {

/// Returns the text in quotation marks, with unprintable bytes as \xNN. A long text is truncated.
std::string quoted_text(const std::string& text);

/// The points are those of `given` or, if that is empty, those that the other members name. Sets of numbers are bit
/// masks: bit n is set if n is in the set.
struct calendar_rule {
  const date::time_zone* zone = nullptr;
  std::uint64_t seconds = 0;
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t month_days = 0;
  std::uint32_t months = 0;
  std::uint32_t weekdays = 0;  // 0: Sunday
  bool either_day = false;     // a day matches if it is in either set; otherwise it must be in both
  bool elapsed = false;        // matches whenever a local clock shows the time
  duration within_second = duration::zero();  // less than a second; zero if `elapsed`
  std::function<std::optional<wall_time>(wall_time after)> given = {};

  /// As calendar::next().
  std::optional<wall_time> next(wall_time after) const;
  /// Whether any day matches.
  bool has_days() const;
};

}  // namespace rondo::detail
