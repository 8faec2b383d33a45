// The source of the decisions of random programs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "scheduler/seeds.hpp"

namespace rondo::test {

/// Decisions are whole numbers. A smaller number is a simpler decision, and 0 is the simplest. They are drawn from a
/// seed, or from the bytes of a fuzzer, and recorded. Replaying a record makes the same decisions again, wherever they
/// came from. Missing numbers count as 0, so a record may be shortened anywhere: see shrunk().
class choices {
 public:
  using list = std::vector<std::uint64_t>;
  using weights = std::vector<std::uint64_t>;

  static choices drawn(std::uint64_t seed) {
    return choices([d = dice(seed)](std::uint64_t end) mutable { return d.roll(end); }, {});
  }
  /// Each number uses as many bytes as its bound needs. After the last byte, all numbers are 0.
  static choices read(std::vector<std::uint8_t> bytes) {
    return choices(
        [bytes = std::move(bytes), at = std::size_t{0}](std::uint64_t end) mutable {
          std::uint64_t number = 0;
          for (auto rest = end - 1; rest != 0 && at != bytes.size(); rest >>= 8)
            number = number << 8 | bytes[at++];
          return number % end;
        },
        {});
  }
  static choices replayed(list record) { return choices({}, std::move(record)); }

  const list& made() const { return made_; }

  /// 0 … end - 1, all equally likely.
  std::uint64_t below(std::uint64_t end) {
    return choose(end, [&] { return draw_(end); });
  }

  /// 0 … likely.size() - 1. Only the result is recorded, so it can be replayed with other weights.
  std::size_t weighted(const weights& likely) {
    return choose(likely.size(), [&] {
      std::uint64_t rest = draw_(std::accumulate(likely.begin(), likely.end(), std::uint64_t{0}));
      std::size_t i = 0;
      while (rest >= likely[i]) rest -= likely[i++];
      return i;
    });
  }

  /// True, the less simple decision, once in `n`.
  bool one_in(std::uint64_t n) { return weighted({n - 1, 1}) == 1; }
  /// False, the simpler decision, once in `n`.
  bool all_but_one_in(std::uint64_t n) { return weighted({1, n - 1}) == 1; }

  /// Records the simplest decision without a draw. A replay makes that decision here, whatever it asks for.
  void take_simplest() { made_.push_back(0); }

  /// Mostly 0 … usual_end - 1, often 0, and occasionally of any magnitude below `end`.
  std::uint64_t amount(std::uint64_t usual_end, std::uint64_t end) {
    return choose(end, [&] {
      const std::uint64_t what = draw_(32);
      if (what < 3) return std::uint64_t{0};
      if (what > 3) return draw_(std::min(usual_end, end));
      const std::uint64_t bits = draw_(static_cast<std::uint64_t>(std::bit_width(end - 1)) + 1);
      return draw_(std::min(std::uint64_t{1} << bits, end));
    });
  }

  /// Weights that differ from seed to seed, so that some programs have much of one thing and none of another.
  /// The first weight, that of the simplest decision, never becomes 0. Not a decision itself, so not recorded.
  weights varied(weights usual) {
    static constexpr std::uint64_t times[] = {1, 1, 1, 0, 4, 20};
    if (!draw_) return usual;
    for (auto& weight : usual) weight *= times[draw_(std::size(times))];
    usual[0] = std::max<std::uint64_t>(usual[0], 1);
    return usual;
  }

 private:
  using source = std::function<std::uint64_t(std::uint64_t end)>;

  choices(source draw, list record) : draw_(std::move(draw)), record_(std::move(record)) {}

  template <class Draw>
  std::uint64_t choose(std::uint64_t end, Draw&& draw) {
    const std::uint64_t recorded = made_.size() < record_.size() ? record_[made_.size()] : 0;
    made_.push_back(draw_ ? draw() : recorded % end);
    return made_.back();
  }

  source draw_;  // if empty, the record is replayed
  list record_, made_;
};

}  // namespace rondo::test
