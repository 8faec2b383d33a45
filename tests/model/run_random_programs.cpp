// Runs random programs for hours: see usage. If one goes wrong, prints a test to paste and ends with status 1.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "model/failing_program.hpp"

namespace {

using namespace rondo::test;
using seconds_clock = std::chrono::steady_clock;

constexpr auto usage = R"(usage: random_programs [--seed N] [--programs N] [--seconds N] [--steps N] [--trace]
  --seed N      of the first program; the next have the next ones. Else: by chance
  --programs N  so many. --seconds N: for so long, and the last one is cut short. Neither: until one goes wrong
  --steps N     about so many operations in each; 100
  --trace       tells what each does before it is done, for programs that crash or do not end
)";

struct settings {
  std::uint64_t seed = std::random_device{}();
  std::uint64_t programs = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t seconds = 1'000'000'000;
  std::size_t steps = 100;
  bool trace = false;
};

settings read(int argc, char** argv) {
  settings s;
  for (int i = 1; i != argc; ++i) {
    const std::string name = argv[i];
    if (name == "--trace") {
      s.trace = true;
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + " what?");
    const std::uint64_t n = std::stoull(argv[i]);
    if (name == "--seed")
      s.seed = n;
    else if (name == "--programs")
      s.programs = n;
    else if (name == "--seconds")
      s.seconds = n;
    else if (name == "--steps")
      s.steps = n;
    else
      throw std::invalid_argument("unknown option " + name);
  }
  if (s.steps < 2) throw std::invalid_argument("too few steps");
  return s;
}

int run(const settings& s) {
  using namespace std::chrono_literals;
  std::cout << "from seed " << s.seed << std::endl;
  const auto start = seconds_clock::now();
  const auto end = start + std::chrono::seconds(s.seconds);
  auto next_report = start + 1min;
  std::uint64_t n = 0;
  for (; n != s.programs; ++n) {
    const auto now = seconds_clock::now();
    if (now >= end) break;
    if (now >= next_report) {
      std::cout << n << " programs, now seed " << s.seed + n << std::endl;
      next_report += 1min;
    }
    const outcome o =
        run_program(choices::drawn(s.seed + n), s.steps, s.trace ? &std::cout : nullptr, {.end = end});
    if (o.wrong.empty()) continue;
    std::cout << "seed " << s.seed + n << ": " << o.wrong << "\nAs a test:\n\n" << as_test(o.made, 2min);
    return 1;
  }
  std::cout << n << " programs ran as the model says" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(read(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n' << usage;
    return 2;
  }
}
