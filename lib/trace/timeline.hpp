// What one thread did, one thing at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

namespace rondo::detail {

/// Which timer's runs took how much time, of those in a part of a timeline.
class tally {
 public:
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

  void change(std::size_t timer, duration by);
  /// The timer with the most time, and that time; `nobody` if all have none.
  std::pair<std::size_t, duration> longest() const noexcept;

 private:
  std::vector<duration> times_;                       // of each timer
  std::set<std::pair<duration, std::size_t>> order_;  // of those that have any
};

/// Segments of time that do not overlap, in order. In between, the thread did nothing that is known.
class timeline {
 public:
  enum class doing : std::uint8_t { task, hand_over, pass };
  struct segment {
    time_point from;
    time_point to;
    doing what;
    std::size_t timer;  // whose task
  };

  /// Precondition: it begins no earlier than the last one ends. One without length is left out.
  void add(const segment&);
  /// Adds the parts of another timeline's segments that are in that time.
  void add(const timeline& from, time_point begin, time_point end);

  /// How much of some time the thread spent on what.
  struct shares {
    duration tasks{};
    duration hand_overs{};
    duration passes{};
    std::size_t longest = tally::nobody;  // the timer whose runs took most of it
    duration longest_time{};
  };
  /// Takes O(log n) for queries that go on from one another, as those about late runs nearly do: it keeps a tally of the
  /// segments of the last one.
  shares between(time_point begin, time_point end);

  /// Where it begins; time_point::max() if it is empty.
  time_point begin() const noexcept { return segments_.empty() ? time_point::max() : segments_.front().from; }

 private:
  // Of each sort of doing, in nanoseconds modulo 2^64: virtual time may span more than the longest duration.
  using sums = std::array<std::uint64_t, 3>;

  std::size_t first_after(time_point) const noexcept;
  void move_tally(std::size_t first, std::size_t last);
  void count(std::size_t which, int sign);

  std::vector<segment> segments_;
  std::vector<sums> before_;  // of all segments before each, and of all
  tally tally_;               // of the segments [first_, last_)
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace rondo::detail
