// The workloads for rondo::wheel and its rivals. A workload is a small class: its sizes, and a run() for any class of
// timers. wheel.cpp lists the workloads that are run, with their names.
//
// Timers and ticks of 1 ms are numbered from 0. A class of timers has
//
//     Timers(std::uint32_t n, firings& fired);          n timers, none of them pending, at tick 0
//     void set(std::uint32_t number, std::int64_t due); sets a timer that is not pending
//     void cancel(std::uint32_t number);                cancels a pending timer
//     void advance(std::int64_t to);                    calls fired(*this, timer) for each due timer
//
// The compiler sees it together with the workload, so that none of these calls is indirect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "firings.hpp"
#include "held_bytes.hpp"
#include "measure.hpp"

constexpr std::int64_t turn = 512;  // ticks, as many as rondo::wheel has buckets by default
constexpr std::int64_t day = 24 * 60 * 60 * 1000;

/// Timers, and a record of which fired.
template <class Timers>
struct stage {
  explicit stage(std::uint32_t n, firings what_fires = {}) : fired(what_fires), timers(n, fired), size(n) {}

  void set_all(std::int64_t span, std::uint64_t seed = 1) {
    measure::random random(seed);
    for (std::uint32_t i = 0; i != size; ++i)
      timers.set(i, fired.now + random.up_to(static_cast<std::uint64_t>(span)));
  }

  void advance(std::int64_t to) {
    fired.now = to;
    timers.advance(to);
  }

  firings fired;
  Timers timers;
  std::uint32_t size;
};

/// Set timers 1 … span ticks ahead, in fresh contenders or in ones that have already fired as many.
struct set_workload {
  std::uint32_t timers;
  std::int64_t span = turn;
  bool used = false;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers);
    if (used) {
      s.set_all(span);
      s.advance(span);
    }
    const auto start = measure::now();
    s.set_all(span, 2);
    const double time = measure::per_operation(start, timers);
    s.advance(2 * span);
    return {time, s.fired.checksum()};
  }
};

/// Cancel a random pending timer and re-arm it 1 … 512 ticks ahead. Time stands still, or advances by a tick after some
/// pairs; then what fires is re-armed.
struct churn_workload {
  std::uint32_t timers;
  std::uint32_t pairs;
  std::uint32_t pairs_per_tick = 0;  // 0: time stands still

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers, firings(pairs_per_tick == 0 ? 0 : turn));
    s.set_all(turn);
    measure::random random(2);
    const std::uint32_t pairs_at_once = pairs_per_tick == 0 ? pairs : pairs_per_tick;
    const auto start = measure::now();
    for (std::uint32_t done = 0; done != pairs; done += pairs_at_once) {
      for (std::uint32_t i = 0; i != pairs_at_once; ++i) {
        const std::uint32_t timer = random.below(timers);
        s.timers.cancel(timer);
        s.timers.set(timer, s.fired.now + random.up_to(turn));
      }
      if (pairs_per_tick != 0) s.advance(s.fired.now + 1);
    }
    const double time = measure::per_operation(start, pairs);
    if (pairs_per_tick == 0) s.advance(turn);
    return {time, s.fired.checksum()};
  }
};

/// Timeouts as servers have them, of one length or a few, most of which are cancelled: cancel a random pending timer
/// and re-arm it with one of the delays. Time advances by a tick after some pairs; what fires is re-armed. In the end
/// all timers fire, in steps of one turn, so that the checksum depends on every deadline.
struct timeouts_workload {
  std::uint32_t timers;
  std::span<const std::int64_t> delays;
  std::int64_t ticks = 60'000;
  std::uint32_t pairs_per_tick = 20;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers, firings(delays));
    measure::random random(2);
    const auto delay = [&] { return delays[random.below(delays.size())]; };
    // Each timer starts with only part of its first delay left. Otherwise timers of one length would share a tick.
    for (std::uint32_t i = 0; i != timers; ++i)
      s.timers.set(i, random.up_to(static_cast<std::uint64_t>(delay())));
    const auto start = measure::now();
    while (s.fired.now != ticks) {
      for (std::uint32_t i = 0; i != pairs_per_tick; ++i) {
        const std::uint32_t timer = random.below(timers);
        s.timers.cancel(timer);
        s.timers.set(timer, s.fired.now + delay());
      }
      s.advance(s.fired.now + 1);
    }
    const double time = measure::per_operation(start, static_cast<std::uint64_t>(ticks) * pairs_per_tick);
    s.fired.rearm_none();
    const std::int64_t end = ticks + *std::max_element(delays.begin(), delays.end());
    while (s.fired.now < end) s.advance(s.fired.now + turn);
    return {time, s.fired.checksum()};
  }
};

/// Fire timers set 1 … span ticks ahead (or only those due within the first `ticks`), in steps of `step` ticks.
struct fire_workload {
  std::uint32_t timers;
  std::int64_t span = turn;
  std::int64_t step = 1;
  std::int64_t ticks = span;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers);
    s.set_all(span);
    const auto start = measure::now();
    for (std::int64_t to = step; to < ticks; to += step) s.advance(to);
    s.advance(ticks);
    return {measure::per_operation(start, s.fired.count()), s.fired.checksum()};
  }
};

/// Timers that are re-armed 1 … 100 ticks ahead when they fire.
struct periodic_workload {
  std::uint32_t timers;
  std::int64_t ticks;

  template <class Timers>
  measure::sample run() const {
    constexpr std::int64_t longest_delay = 100;
    stage<Timers> s(timers, firings(longest_delay));
    s.set_all(longest_delay);
    const auto start = measure::now();
    for (std::int64_t to = 1; to <= ticks; ++to) s.advance(to);
    return {measure::per_operation(start, s.fired.count()), s.fired.checksum()};
  }
};

/// 0 … n - 1 in random order
inline std::vector<std::uint32_t> shuffled(std::uint32_t n) {
  std::vector<std::uint32_t> result(n);
  std::iota(result.begin(), result.end(), 0);
  measure::random random(3);
  for (std::uint32_t i = n; i > 1; --i) std::swap(result[i - 1], result[random.below(i)]);
  return result;
}

/// Cancel, in random order, all timers set 1 … span ticks ahead.
struct cancel_workload {
  std::uint32_t timers;
  std::int64_t span;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers);
    s.set_all(span);
    const std::vector<std::uint32_t> order = shuffled(timers);
    const auto start = measure::now();
    for (const std::uint32_t timer : order) s.timers.cancel(timer);
    const double time = measure::per_operation(start, timers);
    s.advance(span);
    return {time, s.fired.checksum()};
  }
};

/// Fire timers of one bucket, each in another round, turn by turn.
struct one_bucket_workload {
  std::uint32_t timers;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers);
    const std::vector<std::uint32_t> order = shuffled(timers);
    for (std::uint32_t i = 0; i != timers; ++i) s.timers.set(order[i], (i + 1) * turn);
    const auto start = measure::now();
    for (std::uint32_t i = 0; i != timers; ++i) s.advance((i + 1) * turn);
    return {measure::per_operation(start, timers), s.fired.checksum()};
  }
};

/// Set timers with one deadline, and fire them.
struct burst_workload {
  std::uint32_t timers;

  template <class Timers>
  measure::sample run() const {
    stage<Timers> s(timers);
    const auto start = measure::now();
    for (std::uint32_t i = 0; i != timers; ++i) s.timers.set(i, turn / 2);
    s.advance(turn / 2);
    return {measure::per_operation(start, timers), s.fired.checksum()};
  }
};

/// The memory of a pending timer: its object with a payload of four bytes, what is needed to cancel it, and its share
/// of everything else.
struct bytes_workload {
  std::uint32_t timers;

  template <class Timers>
  measure::sample run() const {
    const std::size_t before = held_bytes();
    stage<Timers> s(timers);
    s.set_all(turn);
    const std::size_t held = held_bytes() - before;
    s.advance(turn);
    return {static_cast<double>(held) / timers, s.fired.checksum()};
  }
};

using wheel_workload =
    std::variant<set_workload, churn_workload, timeouts_workload, fire_workload, periodic_workload,
                 cancel_workload, one_bucket_workload, burst_workload, bytes_workload>;
