// Wall-clock times as text, for the tests of the calendar.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include <rondo/calendar.hpp>

namespace calendar_test {

using namespace rondo;
using namespace std::chrono_literals;

/// Parses a time in UTC, such as "2026-03-29 01:00:00", "2026-03-29 01:00:00.5" or "2026-03-29T01:00:00Z".
inline wall_time utc(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::array<char, 10> fraction{"0"};
  const int read = std::sscanf(text.c_str(), "%d-%u-%u%*1[ T]%d:%d:%d.%9[0-9]", &year, &month, &day, &hour,
                               &minute, &second, fraction.data());
  REQUIRE_MESSAGE(read >= 6, text);
  std::string nanoseconds(fraction.data());
  nanoseconds.resize(9, '0');
  const std::chrono::sys_days date(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day));
  return date + std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second) +
         std::chrono::nanoseconds(std::stol(nanoseconds));
}

/// The reverse of utc(), but a time within a minute is appended in nanoseconds.
inline std::string text(wall_time t) {
  if (t == wall_time::max()) return "never";
  const auto minute = std::chrono::floor<std::chrono::minutes>(t);
  const auto day = std::chrono::floor<std::chrono::days>(minute);
  const std::chrono::year_month_day date(day);
  std::array<char, 32> written{};
  std::snprintf(written.data(), written.size(), "%04d-%02u-%02u %02d:%02d", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()}, static_cast<int>((minute - day) / 1h),
                static_cast<int>((minute - day) % 1h / 1min));
  std::string result = written.data();
  if (t != minute) result += '+' + std::to_string((t - minute) / 1ns) + "ns";
  return result;
}
inline std::string text(const std::optional<wall_time>& t) { return t ? text(*t) : "none"; }

/// The next `count` points after `from`, in UTC, as in "2026-03-29 01:00, 2026-03-30 00:30".
inline std::string points(const calendar& c, const std::string& from, int count) {
  std::string result;
  wall_time t = utc(from);
  for (int i = 0; i != count; ++i) {
    const auto next = c.next(t);
    if (!result.empty()) result += ", ";
    result += text(next);
    if (!next) break;
    CHECK(*next > t);
    t = *next;
  }
  return result;
}

/// The message of the std::invalid_argument that `call` throws.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace calendar_test
