#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <rondo/durable.hpp>

#include "calendar/cron_dialects.hpp"
#include "durable/microseconds.hpp"
#include "durable/schedule_access.hpp"
#include "durable/text.hpp"
#ifdef RONDO_DURABLE_CALENDAR
#include <rondo/calendar.hpp>

#include "calendar/calendar_access.hpp"
#endif

namespace rondo::durable {

namespace {

constexpr std::string_view begins_every = "every ", begins_cron = "cron ";

struct unit {
  std::string_view name;
  std::int64_t microseconds;
};
constexpr std::array<unit, 5> units{
    {{"h", 3'600'000'000}, {"min", 60'000'000}, {"s", 1'000'000}, {"ms", 1'000}, {"us", 1}}};

/// In the largest unit that divides it.
std::string text_of(std::int64_t microseconds) {
  const auto* const u =
      std::ranges::find_if(units, [&](const unit& each) { return microseconds % each.microseconds == 0; });
  return std::to_string(microseconds / u->microseconds) + std::string(u->name);
}

std::optional<detail::zoned_point> next_of_grid(std::int64_t period, wall_time since, wall_time after) {
  const std::int64_t from = detail::microseconds_of(since);
  // Rounds down: the first point later than that is later than `after`.
  const std::int64_t until = std::chrono::floor<std::chrono::microseconds>(after.time_since_epoch()).count();
  const std::int64_t last = from + (until - from) / period * period;
  if (last > std::chrono::floor<std::chrono::microseconds>(wall_time::duration::max()).count() - period)
    return std::nullopt;
  return detail::zoned_point{detail::wall_time_of(last + period)};
}

/// Returns the text with one blank in place of several, and none at its ends.
std::string with_single_blanks(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

}  // namespace

schedule schedule::every(any_duration period) {
  const duration given = period;
  if (given <= duration::zero()) {
    throw std::invalid_argument("rondo: a period must be positive, not " + std::to_string(given.count()) +
                                "ns");
  }
  const std::int64_t microseconds = detail::microseconds_of(given);
  return detail::schedule_access::make(
      {std::string(begins_every) + text_of(microseconds), [microseconds](wall_time since, wall_time after) {
         return next_of_grid(microseconds, since, after);
       }});
}

#ifdef RONDO_DURABLE_CALENDAR
schedule schedule::cron(const std::string& expression, const std::string& zone, cron_syntax syntax) {
  using rondo::detail::calendar_access;
  const auto points = rondo::cron(expression, zone, syntax);
  const auto& dialect = rondo::detail::dialect_of(syntax);
  std::string text(begins_cron);
  if (syntax != cron_syntax::standard) text += std::string(dialect.name) + ' ';
  return detail::schedule_access::make(
      {text + with_single_blanks(std::string(rondo::detail::without_cron(expression, dialect))) + ' ' + zone,
       [points](wall_time, wall_time after) { return calendar_access::next(points, after); },
       [points](const detail::zoned_point& point) { return calendar_access::present(points, point); }});
}
#else
schedule schedule::cron(const std::string& expression, const std::string&, cron_syntax) {
  throw store_error(
      "rondo: the schedule cron " + detail::quoted(with_single_blanks(expression)) +
      " needs rondo-calendar, without which this rondo-durable was built (Meson: calendar=enabled)");
}
#endif

std::string schedule::text() const { return rule_->text; }

namespace detail {

namespace {

[[noreturn]] void refuse_text(const std::string& text) {
  throw std::invalid_argument("rondo: there is no schedule " + quoted(text));
}

schedule every_of(const std::string& text) {
  const std::string_view rest = std::string_view(text).substr(begins_every.size());
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto* const u =
      std::ranges::find_if(units, [&](const unit& each) { return each.name == rest.substr(digits); });
  if (digits == 0 || digits > 18 || u == units.end()) refuse_text(text);
  const std::int64_t count = std::stoll(std::string(rest.substr(0, digits)));
  if (count > std::numeric_limits<std::int64_t>::max() / u->microseconds) refuse_text(text);
  return schedule::every(std::chrono::microseconds(count * u->microseconds));
}

}  // namespace

schedule schedule_of(const std::string& text) {
  if (text.starts_with(begins_every)) return every_of(text);
  const auto zone = text.rfind(' ');
  if (!text.starts_with(begins_cron) || zone < begins_cron.size()) refuse_text(text);
  std::string expression = text.substr(begins_cron.size(), zone - begins_cron.size());
  const std::size_t first_word = std::min(expression.find(' '), expression.size());
  const auto& dialects = rondo::detail::cron_dialects;
  const auto* const named = std::ranges::find(dialects, std::string_view(expression).substr(0, first_word),
                                              &rondo::detail::cron_dialect::name);
  auto syntax = cron_syntax::standard;
  if (named != dialects.end()) {
    syntax = static_cast<cron_syntax>(named - dialects.begin());
    expression.erase(0, first_word + 1);
  }
  return schedule::cron(expression, text.substr(zone + 1), syntax);
}

std::optional<zoned_point> first_point(const schedule& s, wall_time now) {
  return schedule_access::rule_of(s).next(now, now);
}

std::optional<zoned_point> next_point(const schedule& s, const zoned_point& point) {
  return first_point(s, schedule_access::rule_of(s).present(point).at);
}

namespace {

/// The last point that is not later than `now`; `point`, if that is none of these.
zoned_point newest(const schedule& s, const zoned_point& point, wall_time now) {
  const auto next_is_over = [&](wall_time after) -> std::optional<zoned_point> {
    const auto next = schedule_access::rule_of(s).next(point.at, after);
    return next && next->at <= now ? next : std::nullopt;
  };
  // No point is in (end, now].
  zoned_point last = point;
  wall_time end = std::max(point.at, now);
  while (next_is_over(last.at)) {
    const wall_time middle(wall_time::duration(  // of times that an operator may have written, too
        std::midpoint(last.at.time_since_epoch().count(), end.time_since_epoch().count())));
    if (const auto later = next_is_over(middle))
      last = *later;
    else
      end = middle;
  }
  return last;
}

}  // namespace

std::optional<zoned_point> point_to_run(const schedule& s, missed_points missed, const zoned_point& point,
                                        wall_time now, duration window) {
  const zoned_point present = schedule_access::rule_of(s).present(point);
  const wall_time earliest = now - window;
  // A point that new zone data have moved to an earlier time is not late for that.
  if (missed == missed_points::skip && std::max(point.at, present.at) < earliest)
    return schedule_access::rule_of(s).next(present.at, earliest - wall_time::duration(1));
  return missed == missed_points::run_once ? newest(s, present, now) : present;
}

}  // namespace detail

}  // namespace rondo::durable
