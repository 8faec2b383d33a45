// Numbers as text.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace common {

// Three significant digits and a suitable unit: "850 us", "1.25 ms", "12.5 s". From 1000 s on, whole seconds.
inline std::string readable(std::chrono::nanoseconds duration) {
  const auto count = static_cast<double>(duration.count());
  // With three digits, 999.5 of a unit would be rounded to 1000, which {:.3g} gives as 1e+03.
  if (count >= 999.5e9) return fmt::format("{:.0f} s", count / 1e9);
  if (count >= 999.5e6) return fmt::format("{:.3g} s", count / 1e9);
  if (count >= 999.5e3) return fmt::format("{:.3g} ms", count / 1e6);
  return fmt::format("{:.3g} us", count / 1e3);
}

// Never rounded up to "100 %" while something is missing.
inline std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (part == whole) return whole == 0 ? "-" : "100 %";
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.2f} %", share > 99.99 ? 99.99 : share);
}

}  // namespace common
