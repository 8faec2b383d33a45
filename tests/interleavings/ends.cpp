// stop(), drain() and the destructor, interleaved with everything else that may be in progress.
#include "interleavings/stage.hpp"

namespace interleavings_ends {

using namespace rondo;
using namespace rondo::test;

void one_is_due(stage& s) {
  s.add(1ms);
  virtual_time::move_to(at(1ms));
}
void two_are_due(stage& s) {
  s.add(1ms);
  one_is_due(s);
}

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part retire{"destroys", [](stage& s) { s.retire(); }};
const part drain{"drains", [](stage& s) { s.drain(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};

part moving(duration to) {
  return {"moves", [to](stage& s) { s.move(0, to); }};
}
part scheduling(duration due) {
  return {"schedules", [due](stage& s) { s.add(due); }};
}

TEST_CASE("stop and pass") {
  check_every_schedule(on_stage(one_is_due, {stop, pass}));
  check_every_schedule(on_stage(two_are_due, {stop, pass}));
}

TEST_CASE("stop from inside, and concurrent calls") {
  const auto one_is_due_and_another_stops = [](stage& s) {
    s.add(1ms);
    s.add_job(0ms);
    s.core().pass();
    s.in_run = [&s](std::size_t i) {
      if (i == 1) s.stop_from_inside();
    };
    virtual_time::move_to(at(1ms));
  };
  const part stop_from_inside{"job", [](stage& s) { s.submitted(0)(); }};
  std::vector<part> others{pass, cancel};
  for (const duration d : {duration(0ms), duration(2ms), duration::max()}) {
    others.push_back(moving(d));
    others.push_back(scheduling(d));
  }
  for (const part& other : others)
    check_every_schedule(on_stage(one_is_due_and_another_stops, {stop_from_inside, other}));
}

TEST_CASE(
    "stop from inside hands timers of a tick back in their order, even if a pass takes them out meanwhile") {
  const auto prepare = [](stage& s) {
    s.add_job(0ms);
    s.core().pass();
    s.add(1ms);
    for (std::size_t i = 2; i != 65; ++i) s.add(2ms);  // so that the last record is in another block
    s.add(1ms);
    for (std::size_t i = 2; i != 65; ++i) s.cancel(i);
    s.in_run = [&s](std::size_t i) {
      if (i != 0) return;
      std::vector<timer_id> of_tick;
      for (const unfired& u : s.stop_from_inside())
        if (u.due == at(1ms)) of_tick.push_back(u.id);
      const unwatched here;
      const bool both = of_tick.size() == 2;
      expect(!both || of_tick == std::vector{s.id_of(1), s.id_of(65)}, "they are in order");
    };
    virtual_time::move_to(at(1ms));
  };
  check_every_schedule(on_stage(prepare, {{"job", [](stage& s) { s.submitted(0)(); }}, pass}), 2);
}

TEST_CASE("stop or destruction, and a call of a handler") {
  const part call{"calls", [](stage& s) { s.call_handler(); }};
  for (const part& end : {stop, retire}) check_small(on_stage(one_is_due, {end, call}));
}

TEST_CASE("stop and stop") {
  const part stop_all{"stops", [](stage& s) {
                        s.stop();
                        expect(s.core().pending() == 0, "after stop() nothing is pending");
                      }};
  check_every_schedule(on_stage(one_is_due, {stop_all, stop_all}));
  check_every_schedule(on_stage(one_is_due, {stop_all, stop_all, pass}), few);
}

TEST_CASE("a stop that does not wait, and concurrent calls") {
  const part stop_at_once{"stops at once", [](stage& s) { s.stop_without_waiting(); }};
  check_every_schedule(on_stage(two_are_due, {stop_at_once, pass}));
  check_every_schedule(on_stage(one_is_due, {stop_at_once, stop}));
  check_every_schedule(on_stage(one_is_due, {stop_at_once, stop_at_once}));
  check_every_schedule(on_stage(one_is_due, {stop_at_once, cancel}));
  check_every_schedule(on_stage(one_is_due, {stop_at_once, stop, pass}), few);
  check_every_schedule(on_stage(one_is_due, {stop_at_once, stop_at_once, pass}), few);
}

TEST_CASE("stop and schedule") {
  for (const duration due : {duration(0ms), duration(2ms), duration::max()})
    check_every_schedule(on_stage(one_is_due, {stop, scheduling(due)}));
  check_every_schedule(on_stage(one_is_due, {stop, scheduling(0ms), pass}), few);
  const auto nothing = [](stage&) {};  // there is no record
  for (const duration due : {duration(2ms), duration::max()})
    check_every_schedule(on_stage(nothing, {stop, scheduling(due)}));
}

TEST_CASE("stop and reschedule") {
  for (const duration to : {duration(0ms), duration(2ms), duration::max()})
    check_every_schedule(on_stage(one_is_due, {stop, moving(to)}));
  check_every_schedule(on_stage(one_is_due, {stop, moving(2ms), pass}), few);
}

TEST_CASE("stop and cancel") {
  check_every_schedule(on_stage(one_is_due, {stop, cancel}));
  check_every_schedule(on_stage([](stage& s) { s.add_plain(5ms); }, {stop, cancel}));
  check_every_schedule(on_stage(one_is_due, {stop, cancel, pass}), few);
}

TEST_CASE("destruction and pass") {
  check_every_schedule(on_stage(one_is_due, {retire, pass}));
  check_every_schedule(on_stage(one_is_due, {retire, pass, cancel}), few);
}

TEST_CASE("a waiting drain notices timers that end without a run") {
  const auto nothing = [](stage&) {};
  const auto one_shot = [](stage& s) { s.add(5ms); };
  const auto periodic = [](stage& s) { s.repeat(rondo::every(5ms)); };
  check_every_schedule(on_stage(one_shot, {drain, cancel}));
  check_every_schedule(on_stage(one_shot, {drain, moving(duration::max())}));
  check_every_schedule(on_stage(nothing, {drain, scheduling(duration::max())}));
  for (const duration to : {duration(2ms), duration::max()})
    check_every_schedule(on_stage(periodic, {drain, moving(to)}));
}

TEST_CASE("a drain does not end while a timer is due that was never due until a run moved it") {
  const auto prepare = [](stage& s) {
    s.add(duration::max());
    s.add_job(1ms);
    s.in_run = [&s](std::size_t i) {
      if (i == 1) s.move(0, 2ms);
    };
    virtual_time::move_to(at(1ms));
    s.core().pass();
  };
  const part job{"job", [](stage& s) { s.submitted(0)(); }};
  const part look{"drains", [](stage& s) {
                    if (!s.core().drain(0ms)) return;
                    expect(s.core().due(s.id_of(0)) == time_point::max(), "nothing that is due is pending");
                  }};
  check_every_schedule(on_stage(prepare, {look, job}), 2);
}

TEST_CASE("a waiting drain notices a timer that is moved to where no tick begins any more") {
  const part drain_and_cancel{"drains", [](stage& s) {
                                const time_point begin = virtual_time::now();
                                expect(s.core().drain(1h), "nothing is due");
                                expect(virtual_time::now() == begin, "it returns at once");
                                s.cancel(0);
                              }};
  check_every_schedule(
      on_stage([](stage& s) { s.add(5ms); }, {drain_and_cancel, moving(duration::max() - 1ns)}));
}

/// Another thread, whose counters are its own, changes these in a run, or between two ends, when a third one wakes the
/// drain.
TEST_CASE("a drain that is woken while other threads count takes no part of that for the whole") {
  const detail::sync::with_own_shards here;
  const part cancel_second_and_let_go{"wakes", [](stage& s) {
                                        s.cancel(1);
                                        s.let_go.set();
                                      }};
  const auto two_runs = [](stage& s) {
    s.in_run = [&s](std::size_t) { s.let_go.wait(); };
    s.add(1ms);
    s.add(5ms);
    virtual_time::move_to(at(1ms));
  };
  check_every_schedule(on_stage(two_runs, {pass, cancel_second_and_let_go, drain}), few);
  const auto one_is_never_due = [](stage& s) {
    s.add_held(duration::max());
    s.add(5ms);
    s.add(5ms);
  };
  const part cancel_first_and_last{"cancels", [](stage& s) {
                                     s.cancel(0);
                                     s.cancel(2);
                                   }};
  check_every_schedule(on_stage(one_is_never_due, {cancel_first_and_last, cancel_second_and_let_go, drain}),
                       few);
}

TEST_CASE("a drain or stop that has found a timer leaves the next timer of its record alone") {
  const auto plain = [](stage& s) { s.add_plain(5ms); };
  const part set_again{"sets again", [](stage& s) {
                         s.cancel(0);
                         s.repeat(rondo::every(6ms));
                       }};
  for (const part& end : {drain, stop}) check_small(on_stage(plain, {end, set_again}));
}

TEST_CASE("the number of pending timers never exceeds the limit") {
  const auto nothing = [](stage&) {};
  const part scheduling_one{"schedules", [](stage& s) {
                              s.add(1ms);
                              expect(s.core().pending() <= 1, "no more are pending than there are places");
                            }};
  const auto one_is_submitted = [](stage& s) {
    one_is_due(s);
    s.core().pass();
  };
  const part job{"job", [](stage& s) { s.submitted(0)(); }};
  check_every_schedule(on_stage(nothing, {scheduling_one, scheduling_one}, {.buckets = 2, .max_pending = 1}));
  check_every_schedule(on_stage(one_is_due, {scheduling_one, pass}, {.buckets = 2, .max_pending = 1}));
  check_every_schedule(on_stage(one_is_submitted, {scheduling_one, job}, {.buckets = 2, .max_pending = 1},
                                stage::tasks_run::as_jobs));
  check_every_schedule(on_stage(one_is_due, {scheduling(1ms), cancel}, {.buckets = 2, .max_pending = 1}));
  check_every_schedule(on_stage(one_is_due, {scheduling(1ms), pass}, {.buckets = 2, .max_pending = 1}));
}

}  // namespace interleavings_ends
