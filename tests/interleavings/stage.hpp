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

/// A core whose timers are counted: each is to run, to be cancelled or refused, or to be handed back by stop(),
/// once. (Numbers: in the order of add().)
class stage {
 public:
  explicit stage(options o = {.buckets = 2}) : core_(std::make_shared<explored_core<>>(std::move(o))) {}

  explored_core<>& core() { return *core_; }

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
    for (const unfired& u : list) {
      const auto found =
          std::find_if(timers_.begin(), timers_.end(), [&](const timer& t) { return t.id == u.id; });
      expect(found != timers_.end(), "stop() hands back timers that were scheduled");
      ++found->returned;
    }
    for (const timer& t : timers_) expect(t.running.load() == 0, "after stop() no run is in progress");
    stopped_ = true;
    return list;
  }

  int runs(std::size_t i) const { return timers_[i].runs; }

  /// When the threads are done.
  void check() {
    if (!stopped_) {
      virtual_time::move_to(at(10ms));
      core_->pass();
      expect(!core_->next_due(), "nothing is due that has run");
      for (const unfired& u : stop()) expect(u.due == time_point::max(), "what does not run is never due");
    }
    for (const timer& t : timers_) {
      expect(t.runs + t.cancelled + t.refused + t.returned == 1, "a timer has one end");
      expect(t.callable.expired(), "a timer that has ended has no callable");
      expect(t.running.load() == 0, "all runs have ended");
    }
    const statistics s = core_->stats();
    expect(s.pending == 0, "nothing is pending");
    expect(adds_up(s), "the counters add up");
    expect(s.fired == sum(&timer::runs) && s.cancelled == sum(&timer::cancelled) &&
               s.returned == sum(&timer::returned),
           "the counters say what has happened");
    core_->retire();
  }

  /// What each run does besides.
  std::function<void(std::size_t)> in_run = [](std::size_t) {};

 private:
  struct timer {
    timer_id id;
    std::weak_ptr<int> callable;
    explored_atomic<int> running;
    int runs = 0, cancelled = 0, refused = 0, returned = 0;
  };

  static time_point deadline(duration due) { return due == duration::max() ? time_point::max() : at(due); }

  void run(timer& t, const firing& f) {
    expect(t.running.fetch_add(1) == 0, "a one-shot runs once at a time");
    expect(virtual_time::now() >= f.due, "no run begins before it is due");
    ++t.runs;
    std::size_t number = 0;
    while (&timers_[number] != &t) ++number;
    in_run(number);
    t.running.fetch_sub(1);
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
  bool stopped_ = false;
  std::shared_ptr<explored_core<>> core_;
};

/// Explores what these do at the same time on a stage that `prepare` has set.
struct part {
  const char* name;
  std::function<void(stage&)> act;
};

inline std::function<scenario()> on_stage(std::function<void(stage&)> prepare, std::vector<part> parts,
                                          options o = {.buckets = 2}) {
  return [=] {
    const auto s = std::make_shared<stage>(o);
    prepare(*s);
    scenario what;
    for (const part& p : parts) what.threads.push_back({p.name, [s, act = p.act] { act(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

}  // namespace rondo::test
