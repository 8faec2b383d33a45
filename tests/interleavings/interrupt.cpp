// Requests to stop, interleaved with the runs that they are for.
#include <version>
#ifdef __cpp_lib_jthread
#include "interleavings/stage.hpp"

#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

namespace interleavings_interrupt {

using namespace rondo;
using namespace rondo::test;

/// A run that is not asked never ends, which the explorer reports.
void one_is_due(stage& s) {
  s.add_until_asked(1ms);
  virtual_time::move_to(at(1ms));
}

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};
const part cancel_and_wait{"cancels and waits", [](stage& s) { s.cancel_and_wait(0); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part stop_at_once{"stops at once", [](stage& s) { s.stop_without_waiting(); }};
const part retire{"destroys", [](stage& s) { s.retire(); }};

TEST_CASE("a request is not lost, whenever it meets the beginning and the end of a run") {
  for (const part& ask : {cancel, cancel_and_wait, stop, stop_at_once, retire})
    check_every_schedule(on_stage(one_is_due, {pass, ask}), few);
}

TEST_CASE("a request is not lost if the task is the first one that takes a token") {
  const part first{"schedules and drives", [](stage& s) {
                     s.add_until_asked(0ms);
                     s.core().pass();
                   }};
  const auto another_is_due = [](stage& s) { s.add(0ms); };  // so that nobody is told of the task
  check_small(on_stage(another_is_due, {first, stop}), 1, 1);
}

TEST_CASE("of two threads that ask, both find the run or its end") {
  check_every_schedule(on_stage(one_is_due, {pass, cancel, cancel_and_wait}), few);
  check_every_schedule(on_stage(one_is_due, {pass, cancel, stop}), few);
}

TEST_CASE("a job is asked, too") {
  const auto submitted = [](stage& s) {
    one_is_due(s);
    s.core().pass();
  };
  const part job{"job", [](stage& s) { s.submitted(0)(); }};
  for (const part& ask : {cancel, stop})
    check_every_schedule(on_stage(submitted, {job, ask}, {.buckets = 2}, stage::tasks_run::as_jobs), few);
}

TEST_CASE(
    "a request for the last run does not reach one by hand, however late the call of stop() is with it") {
  struct handed_back {
    std::shared_ptr<explored_core> core = std::make_shared<explored_core>(options{.buckets = 2}, false);
    std::vector<unfired> list;
    bool asked = false;  // by hand

    handed_back() {
      schedule_on(*core, every(1ms), core->now(),
                  [this](const firing& f, std::stop_token t) { asked |= f.run == 0 && t.stop_requested(); });
      virtual_time::move_to(at(1ms));
    }
    void stop() {
      std::vector<unfired> got = core->stop();
      const unwatched here;
      if (!got.empty()) list = std::move(got);
    }
  };
  const auto scene = [] {
    const auto s = std::make_shared<handed_back>();
    scenario what;
    what.threads.push_back({"drives and stops", [s] {
                              s->core->pass();
                              s->stop();
                            }});
    what.threads.push_back({"stops", [s] { s->stop(); }});
    what.check = [s] {
      for (unfired& u : s->list) u.work();
      expect(!s->asked, "a run by hand is not asked");
      s->core->retire();
    };
    return what;
  };
  check_every_schedule(scene, 2);
}

TEST_CASE("stop callbacks call the scheduler") {
  using call = std::function<void(stage&)>;
  const std::vector<call> calls{
      [](stage& s) { s.cancel(0); },
      [](stage& s) { s.core().cancel_and_wait(s.id_of(0)); },
      [](stage& s) { s.add(5ms); },
      [](stage& s) { s.stop_from_inside(); },
  };
  for (const call& inside : calls) {
    const auto prepare = [inside](stage& s) {
      one_is_due(s);
      s.when_asked = [&s, inside](std::size_t) { inside(s); };
    };
    check_every_schedule(on_stage(prepare, {pass, cancel}), few);
  }
}

TEST_CASE(
    "a stop callback that waits for another timer waits for its run, as it is inside its own timer only") {
  const auto submitted = [](stage& s) {
    one_is_due(s);
    s.add(1ms);
    s.core().pass();
    s.when_asked = [&s](std::size_t) { s.cancel_and_wait(1); };
  };
  const part asked{"asked job", [](stage& s) { s.submitted(0)(); }};
  const part other{"other job", [](stage& s) { s.submitted(1)(); }};
  check_every_schedule(on_stage(submitted, {asked, other, cancel}, {.buckets = 2}, stage::tasks_run::as_jobs),
                       few);
}

}  // namespace interleavings_interrupt
#endif
