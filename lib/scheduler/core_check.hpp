// basic_core: checked builds look, after each call, whether all is as it must be.
#pragma once

#include <iostream>
#include <string>

#include "scheduler/core.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/record_fault.hpp"

namespace rondo::detail {

template <class Sync>
void basic_core<Sync>::end_call(const char* name) noexcept {
  const std::size_t steps = wheel_.buckets() + pool_.slots() / 8;  // the greater part of these is mostly free
  if (!abandoned() && checks_.enough_for(steps)) {
    std::string wrong = fault();
    if (wrong.empty()) wrong = fault_at_rest();
    if (!wrong.empty()) {
      dump(std::cerr);
      die("broken after " + std::string(name) + ": " + wrong);
    }
  }
  checks_.end();
}

/// What holds at any time, other calls in progress or not.
template <class Sync>
std::string basic_core<Sync>::fault() {
  std::string wrong = wheel_.fault();
  pool_.for_each([&](record_type& r) {
    if (!wrong.empty()) return;
    const record_lock hold(r.mutex);
    wrong = fault_of(r);
    if (!wrong.empty()) wrong = "the timer in slot " + std::to_string(r.slot) + ": " + wrong;
  });
  return wrong;
}

/// What holds when no other call, pass or job is in progress. Nothing to say if one is, or comes in between.
template <class Sync>
std::string basic_core<Sync>::fault_at_rest() {
  std::string wrong;
  const bool was_at_rest = checks_.alone_during([&] {
    placement where;
    wheel_.for_each([&](const node&) { ++where.in_wheel; });
    ready_.for_each_good([&](const auto&, std::uint64_t) { ++where.in_pass; });
    pool_.for_each([&](record_type& r) {
      const record_lock hold(r.mutex);
      if (r.place == waiting::apart) ++where.never_due;
      if (r.place == waiting::unplaced) ++where.unplaced;
      if (r.place == waiting::nowhere) ++where.with_executor;  // no run is in progress
    });
    where.slots = pool_.slots();
    where.free = pool_.free();
    wrong = fault_of(pool_.total(), where);
  });
  return was_at_rest ? wrong : "";
}

}  // namespace rondo::detail
