#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "balance.hpp"
#include "producers.hpp"

namespace soak {

namespace {

/// Calls stop() from `callers` threads at the same time. Returns the list that one of them gets; the others get
/// nothing.
std::vector<rondo::unfired> stop(station& s, std::size_t callers) {
  std::vector<std::vector<rondo::unfired>> lists(callers);
  std::vector<std::thread> threads;
  for (auto& list : lists) threads.emplace_back([&] { list = s.timers().stop(); });
  for (std::thread& t : threads) t.join();
  s.books().stopped = true;
  const auto longest = std::ranges::max_element(lists, {}, &std::vector<rondo::unfired>::size);
  always().check(invariant::sums, s.timers().stats().returned == longest->size(), s.name());
  return std::move(*longest);
}

/// Calls stop() while others schedule and cancel.
void stop_under_load(station& s, std::size_t callers) {
  s.books().ending = true;
  const std::vector<rondo::unfired> left = stop(s, callers);
  // The order is by ticks. A timer that was already due when scheduled belongs to the tick in progress, not to the next
  // one, as its due time would suggest.
  const rondo::duration two_ticks = 2ms;
  const auto comes_later = [&](const auto& a, const auto& b) { return a.due - two_ticks >= b.due; };
  const bool is_ordered = std::adjacent_find(left.begin(), left.end(), comes_later) == left.end();
  always().check(invariant::due_order, is_ordered, s.name());
}

/// Drains for a moment, and then again until the producers that cancel and schedule have ended.
void drain_under_load(station& s, std::atomic<bool>& over) {
  s.books().ending = true;
  s.timers().drain(20ms);
  over = true;
  const bool is_drained = s.timers().drain(60s);
  const std::vector<rondo::unfired> left = stop(s, 1);
  const auto is_never_due = [](const rondo::unfired& u) { return u.due == rondo::time_point::max(); };
  always().check(invariant::drained_empty, is_drained && std::ranges::all_of(left, is_never_due), s.name());
}

/// Calls stop() while another thread drains.
void stop_a_drain(station& s) {
  s.books().ending = true;
  bool is_drained = false;
  std::thread drainer([&] { is_drained = s.timers().drain(60s); });
  const std::vector<rondo::unfired> left = stop(s, 1);
  drainer.join();
  always().check(invariant::drained_empty, is_drained, s.name());
}

/// Leaves timers pending and tasks running for the destructor that follows.
void destroy_with_timers_pending(station& s, dice& chance) {
  for (int i = 0; i != 300; ++i) one_shot::schedule(s.timers(), s, chance.up_to(2ms), chance);
}

enum class ending { stop, stops, drain, stopped_drain, destruction };
constexpr std::array endings{ending::stop, ending::stops, ending::drain, ending::stopped_drain,
                             ending::destruction};

/// Schedules timers that nobody cancels and that do not fire in time, so the end of the station must end them.
void leave_pending(station& s, ending how, dice& chance) {
  const rondo::duration far = how == ending::drain ? rondo::duration::max() : 1h;
  for (int i = 0; i != 10; ++i) {
    one_shot::schedule(s.timers(), s, far, chance);
    one_shot::schedule(s.timers(), s, rondo::duration::max(), chance);
  }
}

void live(station& s, ending how, dice chance, const orders& o) {
  std::atomic<bool> over{false};
  const orders own{over, o.batch};
  std::vector<std::thread> users;
  for (const auto producer : {request_timeouts, periodic_jobs, sessions, owners, sleepers})
    if (chance.percent(60)) users.emplace_back(producer, std::ref(s), chance.split(), std::cref(own));
  users.emplace_back(onlooker, std::ref(s), std::cref(own));
  const auto end = clock::now() + 10ms + chance.up_to(100ms);
  while (!o.over && clock::now() < end) o.rest();
  leave_pending(s, how, chance);
  if (how == ending::stop) stop_under_load(s, 1);
  if (how == ending::stops) stop_under_load(s, 3);
  if (how == ending::drain) drain_under_load(s, over);
  if (how == ending::stopped_drain) stop_a_drain(s);
  over = true;
  for (std::thread& user : users) user.join();
  if (how == ending::destruction) return destroy_with_timers_pending(s, chance);
  check_balance(s);
  always().check(invariant::sums, s.timers().pending() == 0, s.name(), "pending", s.timers().pending());
}

}  // namespace

void brief_stations(dice chance, const orders& o, counter& made) {
  for (std::size_t i = 0; !o.over; ++i) {
    station s(kinds[i % kinds.size()], chance());
    live(s, endings[i % endings.size()], chance.split(), o);
    s.close();
    check_all_destroyed(s);
    ++made;
  }
}

}  // namespace soak
