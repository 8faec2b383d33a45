#include "durable/simulation_points.hpp"

#include <algorithm>
#include <chrono>

#include "durable/microseconds.hpp"
#include "durable/schedule_access.hpp"
#include "durable/simulation_text.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::durable::missed_points;
using rondo::durable::wall_time;

namespace {

// A dispatcher counts from when it received a claim, which is later than the time that the engine named.
constexpr duration tolerance = 50ms;

}  // namespace

void simulation_points::declared(const row& r) {
  if (r.point) tasks_[r.id] = {.first = *r.point};
}

void simulation_points::forgot() {
  forgot_ = clocks_.now();
  for (auto& [id, t] : tasks_) t.begun.reset();
}

std::string simulation_points::begins(const runner& by, const detail::run& r) {
  const row* const there = database_.find(r.what.id);
  if (there == nullptr || there->attempt == 0) return {};  // declared anew
  known& t = tasks_[r.what.id];
  const std::int64_t point = detail::microseconds_of(*r.what.point);
  const auto before = std::exchange(t.begun, point);
  if (before && *before < point && !t.over.contains(*before))
    return "a run of its point " + std::to_string(*before) + " has begun, and none has ended";
  return check_missed(by, r);
}

/// At the first attempt, at the time of a point, the newer ones decide.
std::string simulation_points::check_missed(const runner& by, const detail::run& r) const {
  const duration longest_held = by.options->window + by.options->lease;
  if (r.what.attempt != 1 || r.what.due != *r.what.point || by.calm_since >= by.asked ||
      std::max(clocks_.set(), forgot_) >= by.asked - longest_held)
    return {};
  const wall_time then = clocks_.at(by.asked - tolerance - by.longest_step);
  if (r.missed == missed_points::run_once && detail::next_point(*r.repeats, r.point())->at < then)
    return "there is a newer point";
  if (r.missed == missed_points::skip &&
      is_too_old(detail::microseconds_of(*r.what.point), then, by.options->window))
    return "its point is too old";
  return {};
}

bool simulation_points::is_too_old(std::int64_t point, wall_time now, duration window) const {
  return detail::wall_time_of(point) < now - window;
}

std::string simulation_points::passes(const rondo::durable::dispatcher_options& by, const row& r,
                                      const detail::passage& p, bool done) {
  if (p.given_up) tasks_[r.id].over.insert(*r.point);
  if (r.runs() && r.attempt == 0) return {};  // declared anew: it goes on with its new point
  if (done) tasks_[r.id].over.insert(*r.point);
  if (!p.next || detail::microseconds_of(p.next->at) <= *r.point) return "it goes on with no later point";
  if (p.given_up || done) {
    const auto next = detail::next_point(detail::schedule_of(r.schedule), {detail::wall_time_of(*r.point)});
    return next == p.next ? "" : "it does not go on with its next point";
  }
  if (r.runs() || r.missed != missed_points::skip) return "its point is passed over";
  return clocks_.set_back() == simulated_clocks::never ? check_next(by, r, p) : "";
}

/// What is passed over is too old.
std::string simulation_points::check_next(const rondo::durable::dispatcher_options& by, const row& r,
                                          const detail::passage& p) const {
  const auto schedule = detail::schedule_of(r.schedule);
  for (auto at = detail::wall_time_of(*r.point); at < p.next->at; at = detail::next_point(schedule, {at})->at)
    if (!is_too_old(detail::microseconds_of(at), clocks_.engine(), by.window))
      return "its point " + std::to_string(detail::microseconds_of(at)) + " is not too old, but passed over";
  return {};
}

std::string simulation_points::check_all(const row& r) const {
  const known& t = tasks_.at(r.id);
  if (r.missed != missed_points::run_all || r.schedule == unreadable) return {};
  const auto schedule = detail::schedule_of(r.schedule);
  for (auto at = detail::wall_time_of(t.first); detail::microseconds_of(at) < *r.point;
       at = detail::next_point(schedule, {at})->at)
    if (!t.over.contains(detail::microseconds_of(at)))
      return "it was not run for its point " + std::to_string(detail::microseconds_of(at));
  return {};
}

}  // namespace durable_test
