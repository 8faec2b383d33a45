// Wall-clock times as text, for the tests of the calendar.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <date/date.h>

#include <rondo/calendar.hpp>

namespace calendar_test {

using namespace rondo;
using namespace std::chrono_literals;

/// Parses a time in UTC, such as "2026-03-29 01:00:00" or "2026-03-29 01:00:00.5".
inline wall_time utc(const std::string& text) {
  std::istringstream in(text);
  wall_time t;
  in >> date::parse("%F %T", t);
  REQUIRE_MESSAGE(!in.fail(), text);
  return t;
}

/// The reverse of utc(), but a time within a minute is appended in nanoseconds.
inline std::string text(wall_time t) {
  if (t == wall_time::max()) return "never";
  const auto minute = std::chrono::floor<std::chrono::minutes>(t);
  std::string result = date::format("%F %R", minute);
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
