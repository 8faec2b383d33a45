#include "values/readable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rondo::detail {

std::string readable(duration d) {
  struct unit {
    std::uint64_t length;
    const char* name;
  };
  static constexpr std::array<unit, 7> units{{{86'400'000'000'000, "d"},
                                              {3'600'000'000'000, "h"},
                                              {60'000'000'000, "min"},
                                              {1'000'000'000, "s"},
                                              {1'000'000, "ms"},
                                              {1'000, "µs"},
                                              {1, "ns"}}};
  const auto value = static_cast<std::uint64_t>(d.count());
  const unit* u = units.data();
  while (u->length > value && u->length != 1) ++u;
  const std::uint64_t whole = value / u->length;
  const std::uint64_t hundredths = value % u->length * 100 / u->length;
  std::string decimals = std::to_string(100 + hundredths).substr(1, whole < 10 ? 2 : whole < 100 ? 1 : 0);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return std::to_string(whole) + (decimals.empty() ? "" : '.' + decimals) + ' ' + u->name;
}

std::string readable(timer_id id, std::string_view name) {
  std::string text = "timer " + to_string(id);
  if (name.empty()) return text;
  std::string line(name);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text + " \"" + line + '"';
}

}  // namespace rondo::detail
