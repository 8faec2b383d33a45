// A random recurrence, and an independent calculation of the points at which its runs must be due.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/recurrence.hpp>

#include "dice.hpp"

namespace soak {

using namespace std::chrono_literals;

/// When a recurrence may be due: at `first`, then after each gap of `lead`, then after the gaps of `repeated`, over and
/// over.
struct grid {
  rondo::time_point first;
  std::vector<rondo::duration> lead, repeated;

  /// Whether `due` is one of the points, or at most `slack` after one.
  bool has(rondo::time_point due, rondo::duration slack = {}) const {
    rondo::duration left = due - first;
    if (left.count() < 0) return false;
    for (const rondo::duration gap : lead) {
      if (left < gap) return left <= slack;
      left -= gap;
    }
    if (repeated.empty()) return left <= slack;
    rondo::duration all{};
    for (const rondo::duration gap : repeated) all += gap;
    left %= all;
    for (const rondo::duration gap : repeated) {
      if (left < gap) return left <= slack;
      left -= gap;
    }
    return false;
  }
};

struct pattern {
  enum class kind { every, after_completion, list };

  kind what = kind::every;
  rondo::recurrence when;
  grid points;
  rondo::duration gap{};     // for every and after_completion
  rondo::duration jitter{};  // the maximum
  bool moves_itself = false;

  bool is_sequential() const { return when.on_overlap() != rondo::overlapping_runs::allow; }
};

/// Draws only the kind.
inline pattern draw_kind(dice& chance, rondo::time_point first) {
  using what = pattern::kind;
  const auto gap = 2ms + chance.up_to(18ms);
  const std::vector<rondo::duration> gaps{gap, 3 * gap, 2ms};
  switch (chance.below(6)) {
    case 0:
      return {what::after_completion, rondo::after_completion(gap), {first, {}, {}}, gap};
    case 1:
      return {what::list, rondo::intervals(gaps), {first, gaps, {}}};
    case 2:
      return {what::list, rondo::cycle(gaps), {first, {}, gaps}};
    case 3:
      return {what::list, rondo::backoff(gap, 2, 4 * gap), {first, {gap, 2 * gap}, {4 * gap}}};
    default:
      return {what::every, rondo::every(gap), {first, {}, {gap}}, gap};
  }
}

inline pattern draw_pattern(dice& chance) {
  using missed = rondo::missed_runs;
  using overlap = rondo::overlapping_runs;
  const auto first = std::chrono::steady_clock::now() + 5ms + chance.up_to(20ms);
  pattern p = draw_kind(chance, first);
  constexpr missed when_missed[]{missed::skip, missed::burst, missed::delay};
  constexpr overlap on_overlap[]{overlap::skip, overlap::queue_one, overlap::allow};
  p.when = p.when.first_at(first)
               .on_missed(when_missed[chance.below(3)], 1 + chance.below(5))
               .on_overlap(on_overlap[chance.below(3)]);
  if (chance.percent(20)) p.when = p.when.times(1 + chance.below(30));
  if (p.what == pattern::kind::every && chance.percent(20)) {
    p.jitter = p.gap / 2;
    p.when = p.when.jitter(0.5);
  }
  p.moves_itself = p.what == pattern::kind::every && p.is_sequential() && chance.percent(20);
  return p;
}

}  // namespace soak
