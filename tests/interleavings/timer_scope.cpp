// A scope that is closed or destroyed while timers are scheduled through it, and run.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/timer_scope.hpp>

#include "interleavings/explored_scheduler.hpp"

namespace interleavings_timer_scope {

using namespace rondo;
using namespace rondo::test;

/// A scope. Each of its timers has a number that only one thread uses.
class scope_stage {
 public:
  scope_stage() : scope_(std::in_place, scheduler_) { virtual_time::move_to(at(1ms)); }
  scope_stage(const scope_stage&) = delete;
  scope_stage& operator=(const scope_stage&) = delete;

  explored_core& core() { return scheduler_.core(); }
  timer_scope& scope() { return *scope_; }

  void schedule(std::size_t i) {
    schedule(*scope_, i, [] {});
  }
  /// A timer whose task schedules timer `next`. (An optional is empty while it destroys what it held.)
  void schedule_in_task(std::size_t i, std::size_t next) {
    schedule(*scope_, i, [this, &scope = *scope_, next] { schedule(scope, next, [] {}); });
  }
  void close() {
    scope_->close();
    is_empty();
    closed_ = true;
  }
  void destroy() {
    scope_.reset();
    is_empty();
    closed_ = true;
  }

  /// Called when the threads are done.
  void check() {
    if (scope_) {
      expect(!closed_ || scope_->pending() == 0, "a closed scope has no timers");
      expect(scope_->pending() == core().pending(), "all that is pending belongs to the scope");
      destroy();
    }
    std::uint64_t runs = 0;
    for (watched_task& t : tasks_) {
      t.is_over();
      runs += t.runs();
    }
    const statistics s = core().stats();
    expect(s.fired == runs && s.pending == 0 && adds_up(s), "the counters add up");
  }

 private:
  template <class Inside>
  void schedule(timer_scope& scope, std::size_t i, Inside inside) {
    try {
      scope.schedule_after(0ms, tasks_[i].callable(inside));
    } catch (const stopped_error&) {
      expect(tasks_[i].is_destroyed(), "a refused callable is destroyed");
    }
  }

  void is_empty() {
    // A thread that is refused may still have its callable, so only those of timers 0 and 1 are known to be over.
    for (std::size_t i = 0; i != 2; ++i) tasks_[i].is_over();
    expect((scope_ ? scope_->pending() : core().pending()) == 0, "a closed scope leaves no timer behind");
  }

  bool closed_ = false;
  std::array<watched_task, 3> tasks_;
  explored_scheduler scheduler_;
  std::optional<timer_scope> scope_;
};

struct act {
  const char* name;
  std::function<void(scope_stage&)> what;
};

void explore(const std::function<void(scope_stage&)>& prepare, std::vector<act> acts,
             std::optional<std::size_t> preemptions = {}) {
  check_every_schedule(
      [=] {
        const auto s = std::make_shared<scope_stage>();
        prepare(*s);
        scenario what;
        for (const act& a : acts) what.threads.push_back({a.name, [s, a] { a.what(*s); }});
        what.check = [s] { s->check(); };
        return what;
      },
      preemptions);
}

const act pass{"driver", [](scope_stage& s) { s.core().pass(); }};
const act close{"closes", [](scope_stage& s) { s.close(); }};
const act destroy{"destroys", [](scope_stage& s) { s.destroy(); }};
const act schedule{"schedules", [](scope_stage& s) { s.schedule(2); }};

void one_is_due(scope_stage& s) { s.schedule(0); }
void its_task_schedules(scope_stage& s) { s.schedule_in_task(0, 1); }

TEST_CASE("a scope is closed while a timer is scheduled through it") {
  explore([](scope_stage&) {}, {close, schedule});
  explore(one_is_due, {close, schedule}, few);
  explore(one_is_due, {close, schedule, pass}, few);
}

TEST_CASE("a scope is closed or destroyed while its timer fires, and schedules another one") {
  explore(one_is_due, {destroy, pass});
  explore(its_task_schedules, {destroy, pass});
  explore(its_task_schedules, {close, pass}, few);
}

TEST_CASE("all timers of a scope are cancelled while its timer fires, and schedules another one") {
  explore(its_task_schedules, {{"cancels all", [](scope_stage& s) { s.scope().cancel_all(); }}, pass});
}

}  // namespace interleavings_timer_scope
