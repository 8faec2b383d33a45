// What can be wrong with a record: see rondo/detail/checks.hpp.
#pragma once

#include <string>

#include "scheduler/record.hpp"

namespace rondo::detail {

/// In words, or empty. `r` is locked. What is marked [new] in it is looked at only once the record is known to
/// all, and the rest of what a call changes without the lock not at all; so that this is legal at any time.
template <class Sync>
std::string fault_of(const record<Sync>& r) {
  const bool waits_in_wheel = r.place == waiting::in_wheel;
  if (!r.in_progress() && waits_in_wheel) return {};  // waiting; or free, or just being made
  if (!r.live) return r.handed == 0 ? "" : "it is over, and yet the executor's runs of it would start";
  const std::size_t tickets = r.repeats ? r.repeats->handed.size() : r.handed == 0 ? 0 : 1;
  if (tickets != r.handed)
    return "the executor has " + std::to_string(r.handed) + " runs of it, and " + std::to_string(tickets) +
           " are known";
  if (!r.periodic() && r.running != 0) return "it runs once, does, and is pending still";
  if (r.periodic() && r.over()) return "no run of it is to come, and it is pending still";
  if (r.place == waiting::nowhere && !r.in_progress()) return "it is pending and waits for nothing";
  if (r.repeats && r.repeats->runs < r.handed) return "more of its runs are handed over than have begun";
  return {};
}

}  // namespace rondo::detail
