// What the benchmarks share: repeatable random numbers, the clock, and the table.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "splitmix64.hpp"

namespace measure {

/// The same seeds give the same work to every contender.
class random : public splitmix64 {
 public:
  using splitmix64::splitmix64;
  /// 1 … n
  std::int64_t up_to(std::uint64_t n) noexcept { return static_cast<std::int64_t>((*this)() % n) + 1; }
};

struct sample {
  double nanoseconds;  // per operation
  std::uint64_t checksum;
};

struct contender {
  std::string name;
  std::function<sample()> run;  // one repetition
};

inline std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

inline double per_operation(std::chrono::steady_clock::time_point start, std::uint64_t operations) {
  return std::chrono::duration<double, std::nano>(now() - start).count() / static_cast<double>(operations);
}

/// Runs the contenders in turn, so that a change of the machine's speed hits all, and prints medians, ratios
/// to the first, and checksums. False if the checksums differ: then somebody did other work.
inline bool compare(const char* what, const char* unit, const std::vector<contender>& contenders,
                    int repetitions) {
  std::vector<std::vector<double>> times(contenders.size());
  std::vector<std::uint64_t> checksums(contenders.size());
  for (int repetition = -1; repetition != repetitions; ++repetition) {  // the first one warms up
    for (std::size_t i = 0; i != contenders.size(); ++i) {
      const sample s = contenders[i].run();
      checksums[i] = s.checksum;
      if (repetition >= 0) times[i].push_back(s.nanoseconds);
    }
  }
  bool same = true;
  std::printf("%s, %s\n", what, unit);
  double first = 0;
  for (std::size_t i = 0; i != contenders.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    const double median = times[i][times[i].size() / 2];
    if (i == 0) first = median;
    std::printf("  %-24s %10.2f  %8.2f x  checksum %016llx\n", contenders[i].name.c_str(), median,
                median / first, static_cast<unsigned long long>(checksums[i]));
    same = same && checksums[i] == checksums[0];
  }
  if (!same) std::printf("  the checksums differ\n");
  return same;
}

}  // namespace measure
