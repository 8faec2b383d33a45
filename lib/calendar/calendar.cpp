#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include <rondo/calendar.hpp>

#include "calendar/calendar_access.hpp"
#include "calendar/cron.hpp"
#include "calendar/rule.hpp"
#include "calendar/zone_data.hpp"

namespace rondo {

namespace {

constexpr std::uint32_t each_day = 0b1111111;

/// The rule still needs its zone.
detail::calendar_rule at_time_of_day(std::uint32_t weekdays, duration time_of_day) {
  if (time_of_day < duration::zero() || time_of_day >= std::chrono::hours(24))
    throw std::invalid_argument("rondo: a time of day must be at least 0 and less than 24 hours, not " +
                                std::to_string(time_of_day.count()) + "ns");
  const auto second = std::chrono::duration_cast<std::chrono::seconds>(time_of_day).count();
  detail::calendar_rule rule;
  rule.seconds = std::uint64_t{1} << second % 60;
  rule.minutes = std::uint64_t{1} << second / 60 % 60;
  rule.hours = std::uint32_t{1} << second / 3600;
  rule.month_days = ~std::uint32_t{0};
  rule.months = ~std::uint32_t{0};
  rule.weekdays = weekdays;
  rule.within_second = time_of_day % std::chrono::seconds(1);
  return rule;
}

std::shared_ptr<const detail::calendar_rule> in(const std::string& zone, detail::calendar_rule rule) {
  rule.zone = &detail::find_zone(zone);
  return std::make_shared<const detail::calendar_rule>(rule);
}

}  // namespace

calendar daily(any_duration time_of_day, const std::string& zone) {
  return calendar(in(zone, at_time_of_day(each_day, time_of_day)));
}

calendar on_weekdays(any_duration time_of_day, const std::string& zone) {
  using namespace std::chrono;
  return weekly({Monday, Tuesday, Wednesday, Thursday, Friday}, time_of_day, zone);
}

calendar weekly(std::initializer_list<std::chrono::weekday> days, any_duration time_of_day,
                const std::string& zone) {
  std::uint32_t set = 0;
  for (const std::chrono::weekday day : days) {
    if (!day.ok())
      throw std::invalid_argument("rondo: " + std::to_string(day.c_encoding()) + " is not a day of the week");
    set |= std::uint32_t{1} << day.c_encoding();
  }
  if (set == 0) throw std::invalid_argument("rondo: weekly() needs a day of the week");
  return calendar(in(zone, at_time_of_day(set, time_of_day)));
}

calendar cron(const std::string& expression, const std::string& zone, cron_syntax syntax) {
  return calendar(in(zone, detail::parse_cron(expression, syntax)));
}

calendar calendar_of(std::function<std::optional<wall_time>(wall_time)> next) {
  if (!next) throw std::invalid_argument("rondo: calendar_of() takes a function, not an empty one");
  detail::calendar_rule rule;
  rule.given = std::move(next);
  return calendar(std::make_shared<const detail::calendar_rule>(std::move(rule)));
}

std::optional<wall_time> calendar::next(any_wall_time after) const {
  const auto point = rule_->next(after);
  return point ? std::optional(point->at) : std::nullopt;
}

namespace detail {

std::optional<zoned_point> calendar_access::next(const calendar& of, wall_time after) {
  return of.rule_->next(after);
}

zoned_point calendar_access::present(const calendar& of, const zoned_point& p) {
  return of.rule_->present(p);
}

}  // namespace detail

}  // namespace rondo
