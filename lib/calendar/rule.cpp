#include "calendar/rule.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace rondo::detail {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;

/// The last second all of whose nanoseconds can be represented.
constexpr sys_seconds last_second{seconds(std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1)};
/// The number of days after which the Gregorian calendar repeats, including the days of the week.
constexpr int days_of_a_cycle = 146'097;

template <class Bits>
bool has(Bits set, unsigned n) {
  return (set >> n & 1U) != 0;
}

/// The smallest member of the set that is not less than `n`, or 64 if there is none.
int first_from(std::uint64_t set, std::int64_t n) {
  return n > 63 ? 64 : std::countr_zero(set & ~std::uint64_t{0} << n);
}

/// A day and the month that it is in.
struct day_in_month {
  unsigned day, last, weekday;

  /// The weekday of another day of the month.
  unsigned weekday_of(unsigned other) const { return (weekday + 35 + other - day) % 7; }
  /// Whether this is the day from Monday to Friday that is nearest to that one.
  bool is_workday_near(unsigned other) const {
    if (other < 1 || other > last) return false;
    constexpr unsigned sunday = 0;
    constexpr unsigned saturday = 6;
    if (weekday_of(other) == saturday) return day == (other == 1 ? 3 : other - 1);
    if (weekday_of(other) == sunday) return day == (other == last ? other - 2 : other + 1);
    return day == other;
  }
};

bool is_special_month_day(const days_of_the_month& special, const day_in_month& is) {
  if (has(special.before_last, is.last - is.day)) return true;
  for (unsigned n = 0; n < 32; ++n) {
    if (has(special.workdays, n) && is.is_workday_near(n)) return true;
    if (has(special.last_workdays, n) && n < is.last && is.is_workday_near(is.last - n)) return true;
  }
  return false;
}

bool is_special_weekday(const days_of_the_month& special, const day_in_month& is) {
  return has(special.nth_weekdays, 8 * is.weekday + (is.day + 6) / 7) ||
         (has(special.last_weekdays, is.weekday) && is.day + 7 > is.last);
}

bool counts(const calendar_rule& rule, std::chrono::year_month_day date, local_days of) {
  if (!has(rule.months, unsigned{date.month()})) return false;
  const day_in_month is{unsigned{date.day()},
                        unsigned{(date.year() / date.month() / std::chrono::last).day()},
                        std::chrono::weekday(of).c_encoding()};
  const bool by_month = has(rule.month_days, is.day) || is_special_month_day(rule.special, is);
  const bool by_week = has(rule.weekdays, is.weekday) || is_special_weekday(rule.special, is);
  return rule.either_day ? by_month || by_week : by_month && by_week;
}

/// The first day from `day` on that matches, if it is before `end`.
std::optional<local_days> next_day(const calendar_rule& rule, local_days day, local_days end) {
  while (day < end) {
    const std::chrono::year_month_day date(day);
    if (rule.years && !rule.years->contains(int{date.year()})) {
      day = local_days((date.year() + std::chrono::years(1)) / 1 / 1);
      continue;
    }
    if (counts(rule, date, day)) return day;
    if (has(rule.months, unsigned{date.month()}))
      day += days(1);
    else  // skips the month, so that a search through years is fast
      day = local_days((date.year() / date.month() + std::chrono::months(1)) / 1);
  }
  return std::nullopt;
}

/// The first second of an hour, from `from` on, that the rule names.
std::optional<seconds> next_of_hour(const calendar_rule& rule, seconds from) {
  const auto minute = from / minutes(1);
  if (has(rule.minutes, static_cast<unsigned>(minute))) {
    const int second = first_from(rule.seconds, from % minutes(1) / seconds(1));
    if (second != 64) return minutes(minute) + seconds(second);
  }
  const int later = first_from(rule.minutes, minute + 1);
  if (later == 64) return std::nullopt;
  return minutes(later) + seconds(first_from(rule.seconds, 0));
}

/// The first local time from `from` on that the rule names, without `within_second`; std::nullopt if there is none before
/// `end`.
std::optional<local_seconds> next_second(const calendar_rule& rule, local_seconds from, local_days end) {
  const auto today = floor<days>(from);
  for (auto day = next_day(rule, today, end); day; day = next_day(rule, *day + days(1), end)) {
    const seconds since_midnight = *day == today ? from - today : seconds(0);
    const auto hour = since_midnight / hours(1);
    if (has(rule.hours, static_cast<unsigned>(hour))) {
      const auto second = next_of_hour(rule, since_midnight % hours(1));
      if (second) return *day + hours(hour) + *second;
    }
    const int later = first_from(rule.hours, hour + 1);
    if (later != 64) return *day + hours(later) + *next_of_hour(rule, seconds(0));
  }
  return std::nullopt;
}

std::optional<wall_time> representable(sys_seconds t, duration more = duration::zero()) {
  if (t > last_second) return std::nullopt;
  return wall_time(std::chrono::duration_cast<duration>(t.time_since_epoch()) + more);
}

/// A local time with its fraction of a second, also where nanoseconds could not represent it.
struct local_moment {
  local_seconds second;
  duration fraction;

  bool operator<=(const local_moment& other) const {
    return second != other.second ? second < other.second : fraction <= other.fraction;
  }
};

/// The last local time that the zone's clock has shown by `t`. While it shows an hour for the second time: the end of the
/// first pass.
local_moment last_shown(const zone_offsets& zone, wall_time t) {
  const sys_seconds from = floor<seconds>(t);
  const local_seconds shown(from.time_since_epoch() + zone.at(from).offset);
  const constant_offset first = zone.first_reaching(shown);
  if (from < first.end) return {shown, t - from};
  return {local_seconds(first.end.time_since_epoch() + first.offset) - seconds(1), seconds(1) - duration(1)};
}

/// When the zone's clock first reaches or passes that time. The result never decreases as `local` grows.
std::optional<wall_time> first_moment(const zone_offsets& zone, local_moment local) {
  const constant_offset period = zone.first_reaching(local.second);
  const sys_seconds moment = sys_seconds(local.second.time_since_epoch()) - period.offset;
  if (moment < period.begin) return representable(period.begin);
  return representable(moment, local.fraction);
}

std::optional<zoned_point> without_offset(std::optional<wall_time> at) {
  if (!at) return std::nullopt;
  return zoned_point{*at};
}

zoned_point named_by(local_seconds local, wall_time at) {
  return {at, local.time_since_epoch() - floor<seconds>(at).time_since_epoch()};
}

/// See calendar_rule::present().
zoned_point by_now(const zoned_point& p, const zone_offsets& zone, duration within_second) {
  // Operators may have written any numbers.
  constexpr hours most(48);
  if (!p.offset || *p.offset <= -most || *p.offset >= most || p.at < wall_time::min() + 2 * most) return p;
  const sys_seconds second = floor<seconds>(p.at);
  const local_seconds local(second.time_since_epoch() + *p.offset);
  // Where the zone's clock skipped that time, the point is at a whole second.
  const auto moment = first_moment(zone, {local, std::max(p.at - second, within_second)});
  return moment ? named_by(local, *moment) : p;
}

/// The first point whose local time is later than `shown`, and which is later than `after`.
std::optional<zoned_point> next_of_day(const calendar_rule& rule, const zone_offsets& zone,
                                       local_moment shown, wall_time after, local_days end) {
  for (auto second = next_second(rule, shown.second, end); second;
       second = next_second(rule, *second + seconds(1), end)) {
    const local_moment point{*second, rule.within_second};
    if (point <= shown) continue;
    const auto moment = first_moment(zone, point);
    if (!moment) return std::nullopt;
    if (*moment > after) return named_by(*second, *moment);
  }
  return std::nullopt;
}

/// Searches one period of constant offset after another.
std::optional<zoned_point> next_elapsed(const calendar_rule& rule, const zone_offsets& zone, wall_time after,
                                        local_days end) {
  sys_seconds from = floor<seconds>(after) + seconds(1);
  while (from <= last_second) {
    const constant_offset period = zone.at(from);
    const local_seconds shown(from.time_since_epoch() + period.offset);
    const auto second = next_second(rule, shown, end);
    if (!second) return std::nullopt;
    const sys_seconds moment = sys_seconds(second->time_since_epoch()) - period.offset;
    if (moment < period.end) return without_offset(representable(moment));
    from = period.end;
  }
  return std::nullopt;
}

std::string in_ns(wall_time t) { return std::to_string(t.time_since_epoch().count()) + "ns"; }

}  // namespace

std::optional<zoned_point> calendar_rule::next(wall_time after, const zone_offsets& then,
                                               const zone_offsets& by) const {
  if (given) {
    const std::optional<wall_time> next = given(after);
    if (next && *next <= after)
      throw std::logic_error("rondo: the function of calendar_of() returned a point, " + in_ns(*next) +
                             " after 1970, that is not later than " + in_ns(after));
    return without_offset(next);
  }
  const auto end = floor<days>(local_seconds(last_second.time_since_epoch())) + days(2);
  // For an earlier time, some intermediate results could not be represented.
  after = std::max(after, wall_time::min() + std::chrono::hours(48));
  if (elapsed) return next_elapsed(*this, by, after, end);
  return next_of_day(*this, by, last_shown(then, after), &then == &by ? after : wall_time::min(), end);
}

zoned_point calendar_rule::present(const zoned_point& p) const {
  return by_now(p, zone->offsets(), within_second);
}

bool calendar_rule::has_days() const {
  const local_days begin(std::chrono::year(year_set::first) / 1 / 1);
  return next_day(*this, begin, begin + days(days_of_a_cycle)).has_value();
}

std::string quoted_text(const std::string& text) {
  static constexpr std::size_t most = 100;
  static constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      result += c;
    else
      ((result += "\\x") += digits[byte / 16]) += digits[byte % 16];
  }
  return result + (text.size() > most ? "\"..." : "\"");
}

}  // namespace rondo::detail
