#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "balance.hpp"
#include "producers.hpp"

namespace soak {

namespace {

/// stop() while others schedule and cancel.
void stop_under_load(station& s) {
  s.books().ending = true;
  const std::vector<rondo::unfired> left = s.timers().stop();
  s.books().stopped = true;
  // The order is that of ticks; and what was due already when it was scheduled belongs to the tick in progress, not
  // to the next one as its due would.
  const rondo::duration two_ticks = 2ms;
  const auto comes_later = [&](const auto& a, const auto& b) { return a.due - two_ticks >= b.due; };
  const bool is_ordered = std::adjacent_find(left.begin(), left.end(), comes_later) == left.end();
  always().check(invariant::due_order, is_ordered, s.name());
  always().check(invariant::sums, s.timers().stats().returned == left.size(), s.name());
}

/// drain() for a moment, then stop() for the rest.
void drain_under_load(station& s) {
  s.books().ending = true;
  const bool is_drained = s.timers().drain(100ms);
  const std::vector<rondo::unfired> left = s.timers().stop();
  s.books().stopped = true;
  const auto is_to_fire = [](const rondo::unfired& u) { return u.due != rondo::time_point::max(); };
  if (is_drained)
    always().check(invariant::drained_empty, std::none_of(left.begin(), left.end(), is_to_fire), s.name());
}

/// The end of its producers is the beginning of the end: timers pending, tasks running.
void destroy_with_timers_pending(station& s, dice& chance) {
  for (int i = 0; i != 300; ++i) one_shot::schedule(s.timers(), s, chance.up_to(2ms), chance);
}

void live(station& s, dice chance, const orders& o) {
  std::atomic<bool> over{false};
  const orders own{over, o.batch};
  const std::uint64_t how = chance.below(3);
  std::vector<std::thread> users;
  for (const auto producer : {request_timeouts, periodic_jobs, sessions, owners, sleepers})
    if (chance.percent(60)) users.emplace_back(producer, std::ref(s), chance.split(), std::cref(own));
  const auto end = clock::now() + 200ms + chance.up_to(600ms);
  while (!o.over && clock::now() < end) o.rest();
  if (how == 0) stop_under_load(s);
  if (how == 1) drain_under_load(s);
  over = true;
  for (std::thread& user : users) user.join();
  if (how == 2) destroy_with_timers_pending(s, chance);
  if (how != 2) check_balance(s);
}

}  // namespace

void brief_stations(dice chance, const orders& o, counter& made) {
  while (!o.over) {
    station s(kinds[chance.below(kinds.size())], chance());
    live(s, chance.split(), o);
    s.close();
    check_all_destroyed(s);
    ++made;
  }
}

}  // namespace soak
