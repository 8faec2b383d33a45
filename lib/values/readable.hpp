// Durations and timers as readable text.
#pragma once

#include <string>
#include <string_view>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

/// "1.5 ms", "20 µs", "2 h": three digits, rounded down. Precondition: d >= 0.
std::string readable(duration d);

/// `timer 1.7.12 "report"`, or `timer 1.7.12` without a name, on one line.
std::string readable(timer_id id, std::string_view name);

}  // namespace rondo::detail
