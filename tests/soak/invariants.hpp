// What must always be true, how often that was checked, and each violation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

namespace soak {

enum class invariant : unsigned char {
  never_early,
  asked_deadline,
  lateness_true,
  cancelled_never_runs,
  cancelled_destroyed,
  waited_for,
  runs_once,
  on_grid,
  run_numbers,
  no_overlap,
  times_kept,
  one_per_key,
  scope_ends_all,
  sleeps_to_the_end,
  nothing_after_stop,
  due_order,
  drained_empty,
  limit_exact,
  names,
  list,
  sums,
  counts,
  histograms,
  all_destroyed,
  memory,
  count_
};

constexpr std::array<const char*, static_cast<std::size_t>(invariant::count_)> invariant_names{
    "no run starts before its deadline",
    "no deadline is earlier than the one asked for",
    "lateness is not negative, nor more than has passed",
    "a cancelled timer never runs",
    "a timer that was cancelled or is gone is destroyed",
    "after cancel_and_wait no run of it is in progress",
    "a one-shot runs once",
    "due times lie on the grid",
    "run numbers rise by one",
    "no run overlaps another unless allowed",
    "times(n) is kept",
    "a key has one timer",
    "a scope leaves nothing behind",
    "a sleep ends in time, or was asked to stop",
    "nothing runs after stop",
    "stop hands back in due order",
    "drain leaves nothing",
    "max_pending is exact",
    "timers have the names that they were given",
    "list has each timer once, ordered by due",
    "scheduled == pending + completed + cancelled + returned",
    "statistics agree with the account",
    "histograms count every run",
    "callables made == callables destroyed",
    "resident memory does not grow",
};

class invariants {
 public:
  /// Checks one invariant. `parts` say where and what, and are only formatted if it is violated.
  template <class... Parts>
  bool check(invariant which, bool holds, const Parts&... parts) {
    tally& t = tallies_[static_cast<std::size_t>(which)];
    t.checked.fetch_add(1, std::memory_order_relaxed);
    if (holds) return true;
    if (t.violated.fetch_add(1, std::memory_order_relaxed) < most_printed) {
      std::ostringstream text;
      text << "VIOLATED: " << name(which);
      ((text << ' ' << parts), ...);
      text << '\n';
      std::fputs(text.str().c_str(), stdout);
      std::fflush(stdout);
    }
    return false;
  }

  static const char* name(invariant which) { return invariant_names[static_cast<std::size_t>(which)]; }
  std::uint64_t checked(invariant which) const { return tallies_[static_cast<std::size_t>(which)].checked; }
  std::uint64_t violated(invariant which) const { return tallies_[static_cast<std::size_t>(which)].violated; }
  std::uint64_t checked() const { return sum(&tally::checked); }
  std::uint64_t violated() const { return sum(&tally::violated); }

 private:
  static constexpr std::uint64_t most_printed =
      10;  // for each: what goes wrong once may go wrong a million times

  struct alignas(64) tally {
    std::atomic<std::uint64_t> checked{0}, violated{0};
  };

  std::uint64_t sum(std::atomic<std::uint64_t> tally::*what) const {
    std::uint64_t all = 0;
    for (const tally& t : tallies_) all += t.*what;
    return all;
  }

  std::array<tally, static_cast<std::size_t>(invariant::count_)> tallies_;
};

/// The invariants of this process.
inline invariants& always() {
  static invariants all;
  return all;
}

}  // namespace soak
