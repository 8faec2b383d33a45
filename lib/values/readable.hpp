// Durations for people.
#pragma once

#include <string>

#include <rondo/time.hpp>

namespace rondo::detail {

/// 1.5 ms, 20 µs, 2 h: three digits, the rest is cut off. Precondition: d >= 0.
std::string readable(duration d);

}  // namespace rondo::detail
