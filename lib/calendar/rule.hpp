// Which local times a calendar names, and when these are.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <rondo/calendar.hpp>

namespace date {
class time_zone;
}

namespace rondo::detail {

/// In quotation marks, what is not printable as \xNN; of a long text the beginning.
std::string quoted_text(const std::string& text);

/// Throws as daily() does. What get_info() will need is loaded.
const date::time_zone* find_zone(const std::string& name);

/// Sets of numbers are bits: bit n for n.
struct calendar_rule {
  const date::time_zone* zone = nullptr;
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t month_days = 0;
  std::uint32_t months = 0;
  std::uint32_t weekdays = 0;                 // 0: Sunday
  bool either_day = false;                    // a day of either set counts; otherwise one of both
  bool elapsed = false;                       // counts whenever a local clock shows the time
  duration within_minute = duration::zero();  // less than a minute; zero if `elapsed`

  /// As calendar::next().
  std::optional<wall_time> next(wall_time after) const;
  /// Whether any day counts.
  bool has_days() const;
};

}  // namespace rondo::detail
