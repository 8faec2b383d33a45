// Keyed timers: the calls for a key against each other, against the runs of its timers, and against the end of all.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/keyed_timers.hpp>

#include "interleavings/explored_scheduler.hpp"

namespace interleavings_keyed_timers {

using namespace rondo;
using namespace rondo::test;

/// Keyed timers whose key 0 has a timer, which is due. Each further timer has a number that only one thread uses. A timer whose
/// callable owns nothing is replaced in place.
class keys_stage {
 public:
  keys_stage(bool has_timer, bool owns) : owns_(owns), keys_(std::in_place, scheduler_) {
    if (has_timer) set(0, 1ms);
    virtual_time::move_to(at(1ms));
  }
  keys_stage(const keys_stage&) = delete;
  keys_stage& operator=(const keys_stage&) = delete;

  explored_core& core() { return scheduler_.core(); }
  keyed_timers<int>& keys() { return *keys_; }

  void set(std::size_t i, duration due) {
    if (owns_)
      keys_->set_at(0, at(due), tasks_[i].callable());
    else
      keys_->set_at(0, at(due), tasks_[i].bytes());
  }
  /// The first timer's task will set timer `i`, for that key. (An optional is empty while it destroys what it held.)
  void set_in_task(std::size_t i, int key) {
    keys_->set_at(0, at(1ms), tasks_[0].callable([this, &keys = *keys_, i, key] {
      try {
        keys.set_after(key, 0ms, tasks_[i].callable());
      } catch (const stopped_error&) {
        refused_ = true;
      }
    }));
  }
  void repeat() {
    keys_->set(0, every(1ms).first_after(0ms), tasks_[0].callable());
    is_periodic_ = true;
  }
  bool try_set(std::size_t i) { return keys_->try_set_after(0, 4ms, tasks_[i].callable()); }
  void cancel() {
    if (keys_->cancel(0) == cancel_result::cancelled) tasks_[0].is_cancelled();
  }
  void cancel_and_wait() {
    keys_->cancel_and_wait(0);
    is_over();
  }
  void destroy() {
    keys_.reset();
    if (!stops_) is_over();
    expect(core().pending() == 0, "keyed timers leave no timer behind");
  }

  watched_task& task(std::size_t i) { return tasks_[i]; }
  /// What a call has found out about the first timer: whether it runs, if the driver makes a pass.
  void note(bool first_runs) { first_runs_ = first_runs; }
  /// Stops the scheduler. The list has the callables of what has not run.
  void stop() { core().stop(); }
  void expect_stop() { stops_ = true; }

  /// Called when the threads are done. `pending`: whether the key is to have a timer, if known.
  void check(std::optional<bool> pending) {
    if (keys_) {
      expect(!pending || keys_->contains(0) == *pending, "the key has a timer if it should");
      expect(keys_->size() == core().pending(), "all that is pending belongs to a key");
      expect(keys_->contains(0) == keys_->due(0).has_value(), "a timer that a key has is due");
      if (!keys_->contains(0)) expect(keys_->cancel(0) == cancel_result::gone, "no task is in progress");
      destroy();
    }
    is_over();
    std::uint64_t runs = 0;
    for (const watched_task& t : tasks_) runs += t.runs();
    const statistics s = core().stats();
    expect(s.fired == runs && s.pending == 0 && adds_up(s), "the counters add up");
    const bool each_once = s.scheduled == runs + s.cancelled + s.returned;
    expect(each_once || is_periodic_, "each timer has run, or was cancelled, replaced or handed back");
    expect(!first_runs_ || (tasks_[0].runs() == 1) == *first_runs_, "a timer runs unless it was moved");
    expect(!refused_ || runs == 1, "only a task that runs while all ends is refused");
  }

 private:
  void is_over() const {
    for (const watched_task& t : tasks_) t.is_over();
  }

  const bool owns_;
  bool refused_ = false, stops_ = false, is_periodic_ = false;
  std::optional<bool> first_runs_;
  std::array<watched_task, 3> tasks_;
  explored_scheduler scheduler_;
  std::optional<keyed_timers<int>> keys_;
};

struct act {
  const char* name;
  std::function<void(keys_stage&)> what;
};

/// `has_timer`: whether the key has one at first; `pending`: and in the end.
void explore(
    bool has_timer, std::vector<act> acts, std::optional<bool> pending,
    std::optional<std::size_t> preemptions = {},
    const std::function<void(keys_stage&)>& prepare = [](keys_stage&) {}) {
  for (const bool owns : {true, false})
    check_every_schedule(
        [=] {
          const auto s = std::make_shared<keys_stage>(has_timer, owns);
          prepare(*s);
          scenario what;
          for (const act& a : acts) what.threads.push_back({a.name, [s, a] { a.what(*s); }});
          what.check = [s, pending] { s->check(pending); };
          return what;
        },
        preemptions);
}

const act pass{"driver", [](keys_stage& s) { s.core().pass(); }};
const act replace{"replaces", [](keys_stage& s) { s.set(1, 5ms); }};
const act clear{"clears", [](keys_stage& s) { s.keys().clear(); }};
const act destroy{"destroys", [](keys_stage& s) { s.destroy(); }};

TEST_CASE("a key is set while its timer fires") {
  explore(true, {replace, pass}, true);
  explore(true, {{"replaces by what is due", [](keys_stage& s) { s.set(1, 1ms); }}, pass}, {});
}

TEST_CASE("a key is set if it has no timer, while its timer fires") {
  const act try_set{"tries to set", [](keys_stage& s) {
                      if (s.try_set(1)) s.note(true);
                    }};
  explore(true, {try_set, pass}, {});
}

TEST_CASE("a key's timer is moved or cancelled while it fires") {
  const act move{"moves", [](keys_stage& s) { s.note(!s.keys().reschedule_after(0, 4ms)); }};
  const act cancel{"cancels", [](keys_stage& s) { s.cancel(); }};
  explore(true, {move, pass}, {});
  explore(true, {cancel, pass}, false);
  const act cancel_either{"cancels", [](keys_stage& s) { s.keys().cancel(0); }};
  explore(true, {cancel_either, replace}, {});
}

TEST_CASE("two threads set the same key: one of the timers stays") {
  const act set_second{"sets", [](keys_stage& s) { s.set(2, 5ms); }};
  const act set_first{"sets", [](keys_stage& s) { s.set(1, 5ms); }};
  explore(false, {set_first, set_second}, true);
  explore(true, {replace, set_second}, true, few);
  explore(true, {replace, set_second, pass}, true, few);
  explore(true, {replace, clear}, {}, few);
}

TEST_CASE("a key is set by a thread that has another shard than the one that set it before") {
  const detail::sync::with_own_shards here;
  const act set_second{"sets", [](keys_stage& s) { s.set(2, 5ms); }};
  explore(true, {replace, pass}, true);
  explore(false, {replace, set_second}, true);
  explore(true, {replace, set_second, pass}, true, few);
}

TEST_CASE("two threads set the same key if it has no timer: one of them does") {
  const auto trying = [](std::size_t i) {
    return act{"tries to set", [i](keys_stage& s) {
                 if (!s.try_set(i)) expect(s.task(i).is_destroyed(), "a refused callable is destroyed");
                 expect(s.keys().size() == 1, "the key has a timer");
               }};
  };
  explore(false, {trying(1), trying(2)}, true);
}

TEST_CASE("a timer is replaced while its run ends, and the key's tasks are waited for") {
  const act replace_and_wait{"replaces, waits", [](keys_stage& s) {
                               s.set(1, 5ms);
                               s.cancel_and_wait();
                             }};
  explore(true, {replace_and_wait, pass}, false);
  explore(true, {replace, {"cancels, waits", [](keys_stage& s) { s.keys().cancel_and_wait(0); }}}, {}, few);
  explore(true, {replace, pass, {"looks", [](keys_stage& s) { s.keys().size(); }}}, true, few);
}

TEST_CASE("a periodic timer is replaced while its run ends") {
  const auto periodic = [](keys_stage& s) { s.repeat(); };
  explore(false, {replace, pass}, true, {}, periodic);
  explore(false, {destroy, pass}, {}, {}, periodic);
}

TEST_CASE("keyed timers are destroyed while a task sets its own key or another one") {
  explore(true, {destroy, pass}, {});
  explore(false, {destroy, pass}, {}, {}, [](keys_stage& s) { s.set_in_task(1, 0); });
  explore(false, {destroy, pass}, {}, few, [](keys_stage& s) { s.set_in_task(1, 1); });
}

TEST_CASE("keyed timers are destroyed while the scheduler stops") {
  explore(true, {destroy, {"stops", [](keys_stage& s) { s.stop(); }}}, {}, {},
          [](keys_stage& s) { s.expect_stop(); });
}

TEST_CASE("the explorer notices that the lock of keyed timers is not held") {
  planted.not_locked = lock_rank::keys;
  const exploration e = rondo::test::explore([] {
    const auto s = std::make_shared<keys_stage>(true, true);
    scenario what;
    what.threads = {{"replaces", [s] { s->set(1, 5ms); }}, {"sets", [s] { s->set(2, 5ms); }}};
    what.check = [s] { s->check(true); };
    return what;
  });
  planted = {};
  CHECK(e.failure != "");
}

}  // namespace interleavings_keyed_timers
