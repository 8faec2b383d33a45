#include "trace/lateness.hpp"

#include <algorithm>

namespace rondo::detail {
namespace {

timeline::doing doing(traced what) noexcept {
  if (what == traced::pass) return timeline::doing::pass;
  return what == traced::hand_over ? timeline::doing::hand_over : timeline::doing::task;
}

void take_longer(lateness::parts& p, std::size_t timer, duration time) noexcept {
  if (time <= p.longest_time) return;
  p.longest = timer;
  p.longest_time = time;
}

}  // namespace

lateness::lateness(const snapshot& all) : all_(all), jobs_(all.timers.size()) {
  for (const event& e : all.events) {
    time_point& latest = latest_.try_emplace(e.clock, e.begin).first->second;
    latest = std::max({latest, e.begin, e.end == time_point::max() ? e.begin : e.end});
    if (e.what == traced::job) jobs_[e.timer].push_back(&e);
    if (e.what == traced::hand_over) waited_from_[{e.timer, e.run}] = e.from;
  }
  follow_threads();
  follow_drivers();
}

/// Of events that are nested, the innermost one counts.
void lateness::follow_threads() {
  struct open {
    time_point until;
    timeline::segment what;
  };
  struct thread {
    std::vector<open> nested;
    time_point reached = time_point::min();
  };
  std::map<track, thread> threads;
  const auto reach = [](timeline& t, thread& of, time_point until) {
    while (!of.nested.empty() && of.reached < until) {
      open& inner = of.nested.back();
      const time_point to = std::min(inner.until, until);
      t.add({std::max(of.reached, inner.what.from), to, inner.what.what, inner.what.timer});
      of.reached = std::max(of.reached, to);
      if (inner.until <= until) of.nested.pop_back();
    }
    while (!of.nested.empty() && of.nested.back().until <= until) of.nested.pop_back();
    of.reached = std::max(of.reached, until);
  };
  for (const event& e : all_.events) {
    if (!e.takes_time()) continue;
    const track where{e.clock, e.thread};
    thread& t = threads[where];
    reach(threads_[where], t, e.begin);
    const time_point end = std::min(e.end, latest_[e.clock]);
    t.nested.push_back({end, {e.begin, end, doing(e.what), e.timer}});
  }
  for (auto& [where, t] : threads) reach(threads_[where], t, latest_[where.first]);
}

/// The thread of a driver is that of its passes, and of what is in them: the pass itself may be lost.
void lateness::follow_drivers() {
  struct driver {
    track last;
    time_point reached = time_point::min();
  };
  std::map<std::uint32_t, driver> drivers;
  for (const event& e : all_.events) {
    if (e.what == traced::job || !e.takes_time()) continue;
    driver& d = drivers[e.scheduler];
    d.last = {e.clock, e.thread};
    const time_point end = std::max(d.reached, std::min(e.end, latest_[e.clock]));
    drivers_[e.scheduler].add(threads_[d.last], d.reached, end);
    d.reached = end;
  }
  for (const auto& [scheduler, d] : drivers)
    drivers_[scheduler].add(threads_[d.last], d.reached, time_point::max());
}

lateness::parts lateness::of(const event& run) {
  parts p;
  p.whole = std::max(run.lateness(), duration::zero());
  const time_point due = run.begin - p.whole;
  const bool is_job = run.what == traced::job;
  const time_point to_driver = is_job ? std::clamp(run.from, due, run.begin) : run.begin;
  const time_point from = std::clamp(is_job ? driver_waited_from(run) : run.from, due, to_driver);
  timeline& driver = drivers_[run.scheduler];
  if (is_job)
    wait_for_itself(p, driver, run, from, to_driver);
  else
    wait_for_driver(p, driver, from, to_driver);
  if (is_job) {
    p.in_executor += run.begin - to_driver;
    const timeline::shares meanwhile = threads_[{run.clock, run.thread}].between(to_driver, run.begin);
    take_longer(p, meanwhile.longest, meanwhile.longest_time);
  }
  p.in_pass = p.whole - p.woken_late - p.behind_tasks - p.in_executor;
  return p;
}

/// Since when only the driver kept a job from being handed over; if that is not known, since its deadline.
time_point lateness::driver_waited_from(const event& job) const {
  const auto found = waited_from_.find({job.timer, job.run});
  return found != waited_from_.end() ? found->second : job.due;
}

void lateness::wait_for_driver(parts& p, timeline& driver, time_point begin, time_point end) const {
  const timeline::shares spent = driver.between(begin, end);
  p.behind_tasks += spent.tasks;
  p.in_executor += spent.hand_overs;
  take_longer(p, spent.longest, spent.longest_time);
  // What was before the oldest event is not known.
  const time_point known = all_.is_complete ? begin : std::clamp(driver.begin(), begin, end);
  p.woken_late += (end - known) - spent.tasks - spent.hand_overs - spent.passes;
}

/// As wait_for_driver(), but while an executor had a previous run of the same timer, it waited for that.
void lateness::wait_for_itself(parts& p, timeline& driver, const event& job, time_point begin,
                               time_point end) const {
  const std::vector<const event*>& runs = jobs_[job.timer];
  duration own{};
  for (auto at = std::lower_bound(runs.begin(), runs.end(), &job); at != runs.begin() && begin < end;) {
    const event& before = **--at;
    if (before.end > end) continue;  // it was no hindrance
    if (before.end <= begin) break;
    wait_for_driver(p, driver, before.end, end);
    const time_point started = std::max(begin, before.begin);
    own += before.end - started;
    end = std::clamp(before.from, begin, started);
    p.in_executor += started - end;
  }
  p.behind_tasks += own;
  take_longer(p, job.timer, own);
  wait_for_driver(p, driver, begin, end);
}

}  // namespace rondo::detail
