// The options of the program.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string_view>

namespace soak {

struct wishes {
  double seconds = 10;
  std::uint64_t seed = std::random_device{}();
  std::size_t batch = 32;  // timers that a producer sets every two milliseconds
};

inline std::optional<std::size_t> batch_of(std::string_view load) {
  if (load == "light") return 8;
  if (load == "medium") return 32;
  if (load == "heavy") return 128;
  return std::nullopt;
}

/// Returns std::nullopt, and prints a line to stderr, if the options are not understood.
inline std::optional<wishes> read_options(int argc, char** argv) {
  wishes w;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    char* end = nullptr;
    bool is_good = false;
    if (option == "--seconds") {
      w.seconds = std::strtod(value, &end);
      is_good = w.seconds > 0 && *value != '\0' && *end == '\0';
    } else if (option == "--seed") {
      w.seed = std::strtoull(value, &end, 10);
      is_good = *value != '\0' && *end == '\0';
    } else if (option == "--load") {
      const auto batch = batch_of(value);
      w.batch = batch.value_or(0);
      is_good = batch.has_value();
    }
    if (!is_good) {
      std::fprintf(stderr, "soak: %s %s?\nusage: soak [--seconds N] [--seed N] [--load light|medium|heavy]\n",
                   argv[i], value);
      return std::nullopt;
    }
  }
  return w;
}

}  // namespace soak
