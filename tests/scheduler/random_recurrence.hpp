// Recurrences at random, for the models and for the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <rondo/recurrence.hpp>

#include "scheduler/recurrence_model.hpp"
#include "scheduler/seeds.hpp"

namespace rondo::test {

class random_plans {
 public:
  /// `gap`: what gaps are about as long as.
  random_plans(dice& d, ns gap) : dice_(d), gap_(gap) {}

  plan make(ns now) {
    static constexpr plan::kind kinds[] = {
        plan::kind::every,     plan::kind::every, plan::kind::after_completion,
        plan::kind::intervals, plan::kind::cycle, plan::kind::backoff};
    plan p;
    p.what = kinds[dice_.roll(std::size(kinds))];
    p.gaps.push_back(some_gap());
    if (p.what == plan::kind::intervals || p.what == plan::kind::cycle)
      for (auto more = dice_.roll(6); more != 0; --more) p.gaps.push_back(some_gap());
    if (p.what == plan::kind::backoff) {
      static constexpr double factors[] = {1, 1.5, 2, 3};
      p.factor = factors[dice_.roll(std::size(factors))];
      // The library grows it in doubles: over the hours these cannot hold each fraction of a nanosecond.
      if (p.gaps[0] >> 40 != 0) p.gaps[0] -= p.gaps[0] % 64;
      p.cap = p.gaps[0] + below(8 * gap_);
    }
    set_start(p, now);
    set_policies(p);
    return p;
  }

 private:
  ns below(ns end) { return static_cast<ns>(dice_.roll(static_cast<std::uint64_t>(end))); }
  ns some_gap() { return gap_ + below(dice_.one_in(2) ? gap_ : 8 * gap_); }

  void set_start(plan& p, ns now) {
    const auto what = dice_.roll(6);
    if (what == 0) {
      p.first_is = plan::start::after;
      p.first_time = dice_.one_in(8) ? never : below(8 * gap_);
    } else if (what == 1) {
      p.first_is = plan::start::at;
      p.first_time = now + below(8 * gap_);
    } else if (what == 2) {
      p.first_is = plan::start::at;
      p.first_time = now - below(20 * gap_);
    }
  }

  void set_policies(plan& p) {
    if (dice_.one_in(3)) p.times = 1 + dice_.roll(6);
    if (dice_.one_in(3)) set_jitter(p);
    p.missed = missed_runs(dice_.roll(3));
    if (p.missed == missed_runs::burst && dice_.one_in(2)) p.burst_limit = 1 + dice_.roll(4);
    p.overlap = overlapping_runs(dice_.roll(3));
  }

  void set_jitter(plan& p) {
    p.jitter = 1;
    // Powers of two, with which every way to calculate it gives the same.
    while (dice_.one_in(2)) p.jitter /= 2;
    p.seed = dice_.roll(16);
  }

  dice& dice_;
  const ns gap_;
};

/// `start`: what the plan calls 0.
inline recurrence made_from(const plan& p, time_point start) {
  const auto gaps = [&] {
    std::vector<duration> list;
    for (const ns gap : p.gaps) list.emplace_back(gap);
    return list;
  };
  const auto begin = [&]() -> recurrence {
    switch (p.what) {
      case plan::kind::after_completion:
        return after_completion(duration(p.gaps[0]));
      case plan::kind::intervals:
        return intervals(gaps());
      case plan::kind::cycle:
        return cycle(gaps());
      case plan::kind::backoff:
        return backoff(duration(p.gaps[0]), p.factor, duration(p.cap));
      default:
        return every(duration(p.gaps[0]));
    }
  };
  recurrence r = begin().on_missed(p.missed, p.burst_limit).on_overlap(p.overlap);
  if (p.first_is == plan::start::after) r = r.first_after(duration(p.first_time));
  if (p.first_is == plan::start::at) r = r.first_at(start + duration(p.first_time));
  if (p.times != 0) r = r.times(p.times);
  if (p.jitter != 0) r = r.jitter(p.jitter, p.seed);
  return r;
}

}  // namespace rondo::test
