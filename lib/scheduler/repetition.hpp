// What a scheduler keeps of a periodic timer besides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <rondo/detail/node.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Where a periodic timer stands. Three sorts of runs may be on their way at a time: those that the executor
/// has, one that is kept back until these have ended, and the upcoming one, for whose point the timer waits
/// in the wheel, unless that is held back as well.
struct repetition {
  using occurrence = recurrence::occurrence;

  struct handed_run {
    std::uint64_t ticket;
    tick_number tick;
    std::uint64_t order;  // in which it was handed over
    occurrence what;
  };

  repetition(recurrence r, const occurrence& first) : plan(std::move(r)), upcoming(first) {
    handed.reserve(1);  // no more at a time, unless they may overlap
  }

  recurrence plan;
  occurrence upcoming;      // while points are to come; with after_completion() the run that began last
  std::uint64_t runs = 0;   // started or handed over
  bool last_begun = false;  // no points are to come any more
  std::optional<occurrence> kept;  // by overlapping_runs::queue_one
  bool kept_is_due = false;        // what it was kept back for has ended: the timer waits for this one
  bool held_back = false;          // the upcoming one, of a burst: it waits for the run before it to end
  bool catching_up = false;        // the run that began last was a late one of a burst
  std::vector<handed_run> handed;  // oldest first

  bool over() const noexcept { return last_begun && !kept; }

  /// Strong guarantee.
  void make_room_for_ticket() {
    if (handed.size() == handed.capacity()) handed.reserve(2 * handed.size());
  }

  bool spend_ticket(std::uint64_t number) noexcept {
    const auto found =
        std::find_if(handed.begin(), handed.end(), [&](const handed_run& h) { return h.ticket == number; });
    if (found == handed.end()) return false;
    handed.erase(found);
    return true;
  }

  void take_back_tickets() noexcept {
    runs -= handed.size();
    handed.clear();
  }

  /// Moves the next run, with all that is not started taken back, to `due`; the grid goes on from there.
  void move_next(time_point due) noexcept {
    if (!handed.empty())
      upcoming = handed.front().what;
    else if (kept)
      upcoming = *kept;
    take_back_tickets();
    upcoming.due = upcoming.grid = due;
    upcoming.not_before = time_point::min();
    kept.reset();
    last_begun = kept_is_due = held_back = catching_up = false;
  }
};

}  // namespace rondo::detail
