// Random recurrences, for the model and for the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <rondo/recurrence.hpp>

#include "model/choices.hpp"
#include "model/recurrence_model.hpp"

namespace rondo::test {

class random_plans {
 public:
  /// `gap` is the shortest possible gap.
  random_plans(choices& c, ns gap) : choices_(c), gap_(gap) {}

  /// A plain every().
  plan simple() {
    plan p;
    p.what = plan::kind::every;
    p.gaps.push_back(some_gap());
    return p;
  }

  plan make(ns now) {
    static constexpr plan::kind kinds[] = {plan::kind::every, plan::kind::after_completion,
                                           plan::kind::intervals, plan::kind::cycle, plan::kind::backoff};
    plan p = simple();
    p.what = kinds[choices_.weighted({2, 1, 1, 1, 1})];
    if (p.what == plan::kind::intervals || p.what == plan::kind::cycle)
      while (p.gaps.size() != 6 && choices_.all_but_one_in(4)) p.gaps.push_back(some_gap());
    if (p.what == plan::kind::backoff) {
      static constexpr double factors[] = {1, 1.5, 2, 3};
      p.factor = factors[choices_.below(std::size(factors))];
      // The library grows the gap in doubles, and large ones cannot represent every nanosecond.
      if (p.gaps[0] >> 40 != 0) p.gaps[0] -= p.gaps[0] % 4096;
      p.cap = p.gaps[0] + below(8 * gap_);
    }
    set_start(p, now);
    set_policies(p);
    return p;
  }

 private:
  ns below(ns end) { return static_cast<ns>(choices_.below(static_cast<std::uint64_t>(end))); }
  ns some_gap() {
    const auto gap = static_cast<std::uint64_t>(gap_);
    return gap_ + static_cast<ns>(choices_.amount(gap, 8 * gap));
  }

  void set_start(plan& p, ns now) {
    const auto what = choices_.weighted({3, 1, 1, 1});
    if (what == 1) {
      p.first_is = plan::start::after;
      p.first_time = choices_.one_in(8) ? never : below(8 * gap_);
    } else if (what == 2) {
      p.first_is = plan::start::at;
      p.first_time = now + below(8 * gap_);
    } else if (what == 3) {
      p.first_is = plan::start::at;
      p.first_time = now - below(20 * gap_);
    }
    // Not a separate choice, so that the programs in the corpus stay the same in all else.
    if (p.first_is == plan::start::at && p.what == plan::kind::every && p.first_time % 2 != 0)
      p.first_is = plan::start::aligned;
  }

  void set_policies(plan& p) {
    if (choices_.one_in(3)) p.times = 1 + choices_.below(6);
    if (choices_.one_in(3)) {
      // Powers of two, with which every way of calculating the jitter gives the same result.
      p.jitter = 1.0 / static_cast<double>(1 << choices_.weighted({8, 4, 2, 1}));
      p.seed = choices_.below(16);
    }
    p.missed = missed_runs(choices_.below(3));
    if (p.missed == missed_runs::burst && choices_.one_in(2)) p.burst_limit = 1 + choices_.below(4);
    p.overlap = overlapping_runs(choices_.below(3));
  }

  choices& choices_;
  const ns gap_;
};

/// `start` is the time that the plan calls 0.
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
  if (p.first_is == plan::start::aligned) r = r.aligned_to(start + duration(p.first_time));
  if (p.times != 0) r = r.times(p.times);
  if (p.jitter != 0) r = r.jitter(p.jitter, p.seed);
  return r;
}

}  // namespace rondo::test
