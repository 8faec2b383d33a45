// What the workloads do when a timer fires.
#pragma once

#include <cstdint>
#include <span>

/// Records in a sum which timer fired when. The order within a tick does not count, as some rivals do not keep it.
/// If the workload asks for it, re-arms a fired timer; the delay (1 … longest, or one of a few) depends only on which
/// timer fired when.
class firings {
 public:
  firings() = default;
  explicit firings(std::uint64_t longest_delay) : longest_delay_(longest_delay) {}
  explicit firings(std::span<const std::int64_t> delays) : delays_(delays) {}

  std::int64_t now = 0;  // the tick to which the workload has advanced time

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

  /// From now on, fired timers are not re-armed.
  void rearm_none() {
    longest_delay_ = 0;
    delays_ = {};
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t checksum() const { return sum_ + count_; }

 private:
  std::uint64_t longest_delay_ = 0;         // if 0 and there are no delays, fired timers are not re-armed
  std::span<const std::int64_t> delays_{};  // outlives this
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};
