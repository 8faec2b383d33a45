// Timers under the explorer, and what is true of them in the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "interleavings/explored_core.hpp"

namespace rondo::test {

/// A core whose timers are counted: each is to run, to be cancelled or refused, to be handed back by stop(), or
/// rejected by its executor, once. (Numbers: in the order of add().)
template <class Alarm = detail::alarm<explored>>
class stage_with {
 public:
  using core_type = explored_core<Alarm>;
  enum class tasks_run { inline_, as_jobs };

  enum class driver { by_hand, thread };

  explicit stage_with(options o = {.buckets = 2}, tasks_run where = tasks_run::inline_,
                      driver which = driver::by_hand) {
    if (where == tasks_run::as_jobs) o.run_on = [this](job j) { jobs_.push_back(std::move(j)); };
    core_ = std::make_shared<core_type>(std::move(o), which == driver::thread);
  }
  stage_with(const stage_with&) = delete;
  stage_with& operator=(const stage_with&) = delete;

  core_type& core() { return *core_; }
  /// Which the executor has got and nobody has called yet.
  job& handed(std::size_t i) { return jobs_[i]; }

  /// For `due`, or never.
  void add(duration due) {
    timer& t = timers_.emplace_back();
    const auto owned = std::make_shared<int>();
    t.callable = owned;
    try {
      t.id = core_->schedule(deadline(due), core_->now(), [this, &t, owned](const firing& f) { run(t, f); });
    } catch (const stopped_error&) {
      ++t.refused;
    } catch (const capacity_error&) {
      ++t.refused;
    }
  }

  cancel_result cancel(std::size_t i) { return ended(i, core_->cancel(timers_[i].id)); }
  cancel_result cancel_and_wait(std::size_t i) {
    const cancel_result result = ended(i, core_->cancel_and_wait(timers_[i].id));
    expect(timers_[i].running.load() == 0, "after cancel_and_wait() no run is in progress");
    expect(timers_[i].callable.expired(), "after cancel_and_wait() the callable is destroyed");
    return result;
  }
  bool move(std::size_t i, duration to) {
    return core_->reschedule(timers_[i].id, deadline(to), core_->now());
  }
  std::vector<unfired> stop() {
    std::vector<unfired> list = core_->stop();
    for (const unfired& u : list) returned_.push_back(u.id);  // which add() may not have got yet
    for (const timer& t : timers_) expect(t.running.load() == 0, "after stop() no run is in progress");
    stopped_ = true;
    return list;
  }

  void await_run(std::size_t i) { timers_[i].ran.wait(); }

  /// What the scheduler's destructor does.
  void retire() {
    core_->retire();
    for (const timer& t : timers_)
      expect(t.running.load() == 0, "of a destroyed scheduler no run is in progress");
    stopped_ = retired_ = true;
  }

  /// When the threads are done.
  void check() {
    if (!stopped_) {
      virtual_time::move_to(at(10ms));
      core_->pass();
      for (job& j : jobs_) j();
      expect(!core_->next_due(), "nothing is due that has run");
      for (const unfired& u : stop()) expect(u.due == time_point::max(), "what does not run is never due");
    }
    for (job& j : jobs_) j();  // which does nothing any more
    for (timer& t : timers_)
      t.returned = static_cast<int>(std::count(returned_.begin(), returned_.end(), t.id));
    std::uint64_t without_an_end = 0;
    for (const timer& t : timers_) {
      const int ends = t.runs + t.cancelled + t.refused + t.returned;
      expect(ends <= 1, "a timer has one end");
      without_an_end += ends == 0 ? 1 : 0;
      expect(t.callable.expired(), "a timer that has ended has no callable");
      expect(t.running.load() == 0, "all runs have ended");
    }
    const statistics s = core_->stats();
    expect(without_an_end == s.rejected + (retired_ ? s.returned : 0), "a timer has an end");
    expect(s.pending == 0, "nothing is pending");
    expect(adds_up(s), "the counters add up");
    expect(s.fired == sum(&timer::runs) && s.cancelled == sum(&timer::cancelled),
           "what has happened is counted");
    expect(retired_ || s.returned == sum(&timer::returned), "what was handed back is counted");
    core_->retire();
  }

  /// Whether all runs must begin when they are due: time passes only while the driver sleeps.
  bool in_time = false;
  /// What each run does besides.
  std::function<void(std::size_t)> in_run = [](std::size_t) {};

 private:
  struct timer {
    timer_id id;
    std::weak_ptr<int> callable;
    explored_atomic<int> running;
    explored_event ran;
    int runs = 0, cancelled = 0, refused = 0, returned = 0;
  };

  static time_point deadline(duration due) { return due == duration::max() ? time_point::max() : at(due); }

  void run(timer& t, const firing& f) {
    expect(t.running.fetch_add(1) == 0, "a one-shot runs once at a time");
    expect(virtual_time::now() >= f.due, "no run begins before it is due");
    if (in_time) expect(f.lateness == duration::zero(), "a run is not late");
    ++t.runs;
    std::size_t number = 0;
    while (&timers_[number] != &t) ++number;
    in_run(number);
    t.running.fetch_sub(1);
    t.ran.set();
  }

  cancel_result ended(std::size_t i, cancel_result result) {
    if (result == cancel_result::cancelled) {
      ++timers_[i].cancelled;
      expect(timers_[i].callable.expired(), "the callable of a cancelled timer is destroyed");
    }
    return result;
  }

  std::uint64_t sum(int timer::*count) const {
    int all = 0;
    for (const timer& t : timers_) all += t.*count;
    return static_cast<std::uint64_t>(all);
  }

  std::deque<timer> timers_;
  std::deque<job> jobs_;
  std::vector<timer_id> returned_;
  bool stopped_ = false;
  bool retired_ = false;
  std::shared_ptr<core_type> core_;
};

using stage = stage_with<>;

/// Explores what these do at the same time on a stage that `prepare` has set.
struct part {
  const char* name;
  std::function<void(stage&)> act;
};

inline std::function<scenario()> on_stage(std::function<void(stage&)> prepare, std::vector<part> parts,
                                          options o = {.buckets = 2},
                                          stage::tasks_run where = stage::tasks_run::inline_) {
  return [=] {
    const auto s = std::make_shared<stage>(o, where);
    prepare(*s);
    scenario what;
    for (const part& p : parts) what.threads.push_back({p.name, [s, act = p.act] { act(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

}  // namespace rondo::test
