// What the workloads do as a timer fires.
#pragma once

#include <cstdint>
#include <span>

/// Takes down who fired when, in a sum: within a tick the order does not count, as some rivals do not keep it.
/// Where the workload says so a fired timer is re-armed; its delay, 1 … longest or one of a few, depends on
/// nothing but who fired when.
class firings {
 public:
  firings() = default;
  explicit firings(std::uint64_t longest_delay) : longest_delay_(longest_delay) {}
  explicit firings(std::span<const std::int64_t> delays) : delays_(delays) {}

  std::int64_t now = 0;  // the tick to which the workload has moved time

  template <class Timers>
  void operator()(Timers& timers, std::uint32_t timer) {
    std::uint64_t mixed = timer * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(now);
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ULL;
    sum_ += mixed;
    ++count_;
    if (longest_delay_ != 0)
      timers.set(timer, now + 1 + static_cast<std::int64_t>((mixed >> 32) * longest_delay_ >> 32));
    else if (!delays_.empty())
      timers.set(timer, now + delays_[(mixed >> 32) * delays_.size() >> 32]);
  }

  /// From here on fired timers stay where they are.
  void rearm_none() {
    longest_delay_ = 0;
    delays_ = {};
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t checksum() const { return sum_ + count_; }

 private:
  std::uint64_t longest_delay_ = 0;         // 0, and no delays either: fired timers stay where they are
  std::span<const std::int64_t> delays_{};  // outlives this
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};
