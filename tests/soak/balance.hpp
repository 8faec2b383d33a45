// Checks that the accounts agree once everything is quiescent.
#pragma once

#include <thread>
#include <vector>

#include "one_shot.hpp"

namespace soak {

inline bool adds_up(const rondo::statistics& s) {
  return s.scheduled == s.pending + s.completed + s.cancelled + s.returned;
}

/// Waits until `holds` returns true. Returns false if that takes more than ten seconds.
template <class Predicate>
bool eventually(Predicate&& holds) {
  for (const auto end = clock::now() + 10s; !holds(); std::this_thread::sleep_for(1ms))
    if (clock::now() > end) return false;
  return true;
}

inline void check_all_destroyed(station& s) {
  const account& books = s.books();
  always().check(invariant::all_destroyed,
                 eventually([&] { return books.made == books.destroyed && books.sleeping == 0; }), s.name(),
                 "made", books.made, "destroyed", books.destroyed, "asleep", books.sleeping);
}

/// Precondition: nobody schedules or cancels any more, and all timers have ended or are about to end.
inline void check_balance(station& s) {
  account& books = s.books();
  // (The driver or the pool may be about to finish its work.)
  always().check(invariant::sums, eventually([&] { return adds_up(s.timers().stats()); }), s.name());
  const rondo::statistics now = s.timers().stats();
  const auto agrees = [&](const char* what, bool holds, std::uint64_t theirs, std::uint64_t ours) {
    always().check(invariant::counts, holds, s.name(), what, theirs, "in the account", ours, "unsure",
                   books.unsure);
  };
  const auto about = [&](std::uint64_t theirs, std::uint64_t ours) {
    return ours <= theirs && theirs <= ours + books.unsure;
  };
  agrees("scheduled", about(now.scheduled, books.scheduled), now.scheduled, books.scheduled);
  agrees("fired", about(now.fired, books.ran), now.fired, books.ran);
  agrees("failed", now.failed == books.threw, now.failed, books.threw);
  agrees("told", books.told == books.threw, books.told, books.threw);
  agrees("rejected", now.rejected <= books.dropped, now.rejected, books.dropped);
  // (A run that is rejected while stop() begins is counted, but the handler is quiet by then.)
  agrees("told of rejected", eventually([&] {
           return books.stopped ? now.rejected >= books.told_of_rejected
                                : now.rejected == books.told_of_rejected;
         }),
         now.rejected, books.told_of_rejected);
  agrees("cancelled", now.cancelled >= books.cancelled, now.cancelled, books.cancelled);
  const bool is_complete = now.lateness.count() == now.fired && now.run_time.count() == now.fired;
  always().check(invariant::histograms, is_complete, s.name(), "fired", now.fired, "lateness",
                 now.lateness.count(), "run time", now.run_time.count());
  // The unsure results are known now.
  books.scheduled = now.scheduled;
  books.ran = now.fired;
  books.unsure = 0;
}

/// Checks that exactly as many timers as the limit are accepted. Precondition: none is pending.
inline void check_limit(station& s) {
  if (s.limit() == rondo::unlimited) return;
  dice chance(0);
  std::vector<scheduled_one_shot> accepted;
  do accepted.push_back(one_shot::schedule(s.timers(), s, 1h, chance));
  while (accepted.back().what != nullptr && accepted.size() <= s.limit());
  always().check(invariant::limit_exact, accepted.size() == s.limit() + 1 && accepted.back().what == nullptr,
                 accepted.size() - 1, "accepted of", s.limit());
  accepted.pop_back();
  for (const auto& each : accepted) check_cancel(s.books(), *each.what, s.timers().cancel(each.id));
}

/// Checks a quiescent station that will be used again.
inline void check_at_rest(station& s) {
  check_all_destroyed(s);
  check_balance(s);
  check_limit(s);
  always().check(invariant::sums, s.timers().pending() == 0, s.name(), "pending", s.timers().pending());
}

}  // namespace soak
