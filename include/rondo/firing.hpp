// One run, as its task receives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo {

/// One run of a task.
struct firing {
  timer_id id;            ///< the timer's id, as returned by the scheduling call
  time_point due;         ///< its exact deadline, not rounded to a tick
  duration lateness{};    ///< the start of the run − due; never negative
  std::uint64_t run = 0;  ///< 1 for the timer's first run, 2, …
  /// Grid points that passed without a run since the previous run. Points dropped because that run was in progress are
  /// not among them: they are counted in statistics::overlapped.
  std::uint64_t missed = 0;
  /// The name in the timer's timer_options; empty if it has none. Valid only during the call that receives the firing:
  /// copy it to keep it.
  std::string_view name = {};
  /// How many of the timer's runs have not begun when this one begins, as times() and the list of intervals() limit them:
  /// 0 if none can follow, std::nullopt if nothing limits them. Points of a list that are missed or dropped later make it
  /// fewer. A timer that runs once has 0.
  std::optional<std::uint64_t> left = {};
};

}  // namespace rondo
