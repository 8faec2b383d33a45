// Tasks that are asked to stop: which calls ask which runs, and what their stop callbacks may do.
#include <version>
#ifdef __cpp_lib_jthread
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_interrupt {

using namespace rondo;
using namespace rondo::test;

using stop_callback = std::stop_callback<std::function<void()>>;

/// Runs one task, calls `act` inside its run, and says whether the token was asked to stop before and after that.
template <class Scheduler, class Act>
std::string asked_by(Scheduler& time, const recurrence& when, Act&& act) {
  std::string told;
  const timer_id id = time.schedule(when, [&](const firing& f, std::stop_token token) {
    told += token.stop_requested() ? "asked " : "not ";
    if (f.run == 1) act(f.id);
    told += token.stop_requested() ? "asked " : "not ";
  });
  time.advance(1s);
  time.cancel(id);
  return told;
}

TEST_CASE("cancel() of a running timer asks the run to stop") {
  manual_timer time;
  CHECK(asked_by(time, every(1s), [&](timer_id id) { CHECK(time.cancel(id) == cancel_result::running); }) ==
        "not asked ");
  CHECK(asked_by(time, every(1s).times(1), [&](timer_id id) { time.cancel(id); }) == "not asked ");
  CHECK(asked_by(time, every(1s), [&](timer_id id) { time.cancel_and_wait(id); }) == "not asked ");
}

TEST_CASE("a one-shot is asked, too") {
  manual_timer time;
  timer_id id;
  bool asked = false;
  id = time.schedule_after(1s, [&](std::stop_token token) {
    CHECK(time.cancel(id) == cancel_result::running);
    asked = token.stop_requested();
  });
  time.advance(1s);
  CHECK(asked);
}

TEST_CASE("stop() asks the runs in progress, with and without a limit") {
  manual_timer first;
  CHECK(asked_by(first, every(1s), [&](timer_id) { first.stop(); }) == "not asked ");
  manual_timer second;
  CHECK(asked_by(second, every(1s), [&](timer_id) { second.stop(0s); }) == "not asked ");
}

TEST_CASE("the destructor of the scheduler asks, and so does stop() without memory for its list") {
  auto time = std::make_unique<manual_timer>();
  bool asked = false;
  time->schedule_after(1s, [&](std::stop_token token) {
    SUBCASE("with memory") { time.reset(); }
    SUBCASE("without") {
      const failing_new none(0);
      time.reset();
    }
    asked = token.stop_requested();
  });
  manual_timer& driven = *time;
  driven.advance(1s);
  CHECK(asked);
}

TEST_CASE("rescheduling, and the end of another timer, ask nobody") {
  manual_timer time;
  const auto other = time.schedule_after(1h, doing_nothing());
  CHECK(asked_by(time, every(1s), [&](timer_id id) {
          CHECK(time.reschedule_after(id, 1h));
          time.cancel(other);
        }) == "not not ");
}

TEST_CASE("a timer that is cancelled while it waits asks nobody, not even a run that has ended") {
  manual_timer time;
  std::vector<std::stop_token> tokens;
  const auto id = time.schedule_every(1s, [&](std::stop_token token) { tokens.push_back(token); });
  time.advance(2s);
  CHECK(time.cancel(id) == cancel_result::cancelled);
  REQUIRE(tokens.size() == 2);
  CHECK_FALSE(tokens[0].stop_requested());
  CHECK_FALSE(tokens[1].stop_requested());
  CHECK_FALSE(tokens[1].stop_possible());
}

TEST_CASE("only the run in progress is asked, not an earlier one whose token was kept") {
  manual_timer time;
  std::vector<std::stop_token> tokens;
  time.schedule_every(1s, [&](const firing& f, std::stop_token token) {
    tokens.push_back(token);
    if (f.run == 2) time.cancel(f.id);
  });
  time.advance(3s);
  REQUIRE(tokens.size() == 2);
  CHECK_FALSE(tokens[0].stop_requested());
  CHECK(tokens[1].stop_requested());
}

TEST_CASE("of runs that overlap, all are asked") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  std::vector<std::stop_token> tokens;
  const auto id =
      time.schedule(every(1s).on_overlap(overlapping_runs::allow), [&](const firing& f, std::stop_token t) {
        tokens.push_back(t);
        if (f.run == 1) return std::exchange(jobs[1], job())();
        CHECK(time.cancel(f.id) == cancel_result::running);
      });
  time.advance(2s);
  std::exchange(jobs[0], job())();
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0].stop_requested());
  CHECK(tokens[1].stop_requested());
  CHECK_FALSE(time.pending(id));
}

TEST_CASE("stop callbacks run in the call that asks, inside, and may use the scheduler") {
  manual_timer time;
  journal j;
  timer_id id;
  id = time.schedule_every(1s, [&](std::stop_token token) {
    const stop_callback when_asked(token, [&] {
      j.add("asked");
      CHECK(time.cancel(id) == cancel_result::running);
      CHECK(time.cancel_and_wait(id) == cancel_result::running);  // does not wait: it is inside that run
      CHECK_FALSE(time.pending(id));
      time.schedule_after(1s, j.noting("later"));
      CHECK_THROWS_AS(time.drain(1s), std::logic_error);
      CHECK_THROWS_AS(time.advance(1s), std::logic_error);
    });
    j.add("before");
    time.cancel(id);
    j.add("after");
  });
  time.advance(2s);
  CHECK(j.take() == "before asked after later");
}

TEST_CASE("a stop callback may stop and destroy the scheduler, whichever call asks") {
  auto time = std::make_unique<manual_timer>();
  manual_timer& driven = *time;
  journal j;
  std::size_t left = 1;
  std::function<void(timer_id)> ask;
  SUBCASE("cancel") {
    ask = [&](timer_id id) { time->cancel(id); };
  }
  SUBCASE("cancel_and_wait") {
    ask = [&](timer_id id) { time->cancel_and_wait(id); };
  }
  SUBCASE("stop") {
    ask = [&](timer_id) { left -= time->stop().size(); };
  }
  SUBCASE("stop with a limit") {
    ask = [&](timer_id) { left -= time->stop(0s).value().size(); };
  }
  driven.schedule_after(1h, j.noting("never"));
  driven.schedule_every(1s, [&](const firing& f, std::stop_token token) {
    const stop_callback when_asked(token, [&] {
      left -= time->stop().size();
      time.reset();
      j.add("destroyed");
    });
    ask(f.id);
    j.add("after");
  });
  driven.advance(1s);
  CHECK(j.take() == "destroyed after");
  CHECK(left == 0);
}

TEST_CASE("a run that throws, and one on an executor, are over: nobody asks them") {
  int errors = 0;
  options o;
  o.on_error = [&](std::exception_ptr, const firing&) { ++errors; };
  manual_timer time(o);
  std::optional<std::stop_token> kept;
  const auto id = time.schedule_every(1s, [&](std::stop_token token) {
    kept = token;
    throw 1;
  });
  time.advance(1s);
  CHECK(errors == 1);
  CHECK(time.cancel(id) == cancel_result::cancelled);
  CHECK_FALSE(kept->stop_requested());
}

TEST_CASE("what stop() returns may be run by hand, and is not asked") {
  manual_timer time;
  bool asked = true;
  time.schedule_after(1s, [&](std::stop_token token) { asked = token.stop_requested(); });
  auto list = time.stop();
  REQUIRE(list.size() == 1);
  list[0].work();
  CHECK_FALSE(asked);
}

TEST_CASE(
    "a task whose run stop() has asked is not asked when it runs by hand or in a new timer, which may ask "
    "it") {
  manual_timer time;
  std::vector<bool> asked;
  std::function<void()> act = [&] { std::thread([&] { CHECK_FALSE(time.stop(0s)); }).join(); };
  time.schedule_every(1s, [&](std::stop_token token) {
    if (act) act();
    asked.push_back(token.stop_requested());
  });
  time.advance(1s);
  act = nullptr;
  auto list = time.stop();
  REQUIRE(list.size() == 1);
  list[0].work();
  manual_timer next;
  const auto id = next.schedule_every(1s, std::move(list[0].work));
  next.advance(1s);
  act = [&] { CHECK(next.cancel(id) == cancel_result::running); };
  next.advance(1s);
  CHECK(asked == std::vector{true, false, false, true});
}

TEST_CASE(
    "without memory, a task that can be interrupted is not scheduled, or its run fails and the timer goes "
    "on") {
  if (!failing_new::available) return;
  int errors = 0, runs = 0;
  options o;
  o.on_error = [&](std::exception_ptr, const firing&) { ++errors; };
  manual_timer time(o);
  const auto work = [&](std::stop_token) { ++runs; };
  time.schedule_after(1s, doing_nothing());  // memory for records
  {
    const failing_new none(0);
    CHECK_THROWS_AS(time.schedule_after(1s, work), std::bad_alloc);
  }
  CHECK(time.pending() == 1);
  time.schedule_every(1s, work);
  {
    const failing_new none(0);
    time.advance(1s);
  }
  CHECK(runs == 0);
  CHECK(errors == 1);
  time.advance(1s);
  CHECK(runs == 1);
}

}  // namespace scheduler_interrupt
#endif
