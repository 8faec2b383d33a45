// Which local times a calendar names, and when they occur.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rondo/calendar.hpp>

#include "calendar/zone_data.hpp"
#include "calendar/zoned_point.hpp"

namespace rondo::detail {

/// Returns the text in quotation marks, with unprintable bytes as \xNN. A long text is truncated.
std::string quoted_text(const std::string& text);

/// Years from `first` on.
struct year_set {
  static constexpr int first = 1970;
  static constexpr int count = 300;
  std::bitset<count> years;

  bool contains(int year) const noexcept {
    return year >= first && year < first + count && years.test(static_cast<std::size_t>(year - first));
  }
};

/// Days that depend on the month, in addition to those of calendar_rule's sets.
struct days_of_the_month {
  std::uint32_t before_last = 0;  // bit n: the n-th day before the last one
  std::uint32_t workdays =
      0;  // bit n: the day from Monday to Friday that is nearest to the n-th, in the month
  std::uint32_t last_workdays = 0;  // bit n: the one that is nearest to the n-th day before the last one
  std::uint64_t nth_weekdays = 0;   // bit 8 * weekday + n: the n-th such day
  std::uint32_t last_weekdays = 0;  // bit n: the last such day
};

/// The points are those of `given` or, if that is empty, those that the other members name. Sets of numbers are bit
/// masks: bit n is set if n is in the set.
struct calendar_rule {
  const detail::zone* zone = &utc();
  std::uint64_t seconds = 0;
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint32_t month_days = 0;
  std::uint32_t months = 0;
  std::uint32_t weekdays = 0;  // 0: Sunday
  days_of_the_month special = {};
  std::optional<year_set> years = {};  // all, if empty
  bool either_day = false;             // a day matches if it is in either set; otherwise it must be in both
  bool elapsed = false;                // matches whenever a local clock shows the time
  duration within_second = duration::zero();  // less than a second; zero if `elapsed`
  std::function<std::optional<wall_time>(wall_time after)> given = {};

  /// As calendar::next(). Points of elapsed time, or `given`, have no offset.
  std::optional<zoned_point> next(wall_time after) const {
    const zone_offsets& by = zone->offsets();
    return next(after, by, by);
  }
  /// The first point, by the offsets `by`, that follows all points which were due by `after` when the zone had the offsets
  /// `then`. A local time that the clock had shown is not named again, whenever it would be now.
  std::optional<zoned_point> next(wall_time after, const zone_offsets& then, const zone_offsets& by) const;
  /// When the zone's clock, by its offsets now, first reaches the local time of the point. The same point, if that has no
  /// offset.
  zoned_point present(const zoned_point& p) const;
  /// Whether any day matches.
  bool has_days() const;
};

}  // namespace rondo::detail
