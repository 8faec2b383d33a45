// Durations as text for people.
#pragma once

#include <string>

#include <rondo/time.hpp>

namespace rondo::detail {

/// "1.5 ms", "20 µs", "2 h": three digits, rounded down. Precondition: d >= 0.
std::string readable(duration d);

}  // namespace rondo::detail
