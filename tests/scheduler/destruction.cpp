// A scheduler may be destroyed at any moment.
#include <memory>
#include <stdexcept>
#include <string>

#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_destruction {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a scheduler may be destroyed inside its own task: that run ends, and no other follows") {
  auto time = std::make_unique<manual_timer>();
  const auto token = std::make_shared<int>(0);
  journal ran;
  time->schedule_after(1ms, [&, token] {
    ran.add("first");
    time.reset();
    ran.add("destroyed");
    CHECK(token.use_count() == 2);  // the copy of the running task, and the test's
  });
  time->schedule_after(1ms, [&, token] { ran.add("second"); });
  time->schedule_every(1ms, [&, token] { ran.add("often"); });
  CHECK(time->advance(1h) == 1);
  CHECK(ran.take() == "first destroyed");
  CHECK(token.use_count() == 1);
}

TEST_CASE("a scheduler may be destroyed inside its own periodic task") {
  auto time = std::make_unique<manual_timer>();
  const auto token = std::make_shared<int>(0);
  time->schedule_every(1ms, [&time, token](const firing& f) {
    ++*token;
    if (f.run == 3) time.reset();
  });
  CHECK(time->advance(1h) == 3);
  CHECK(*token == 3);
  CHECK(token.use_count() == 1);
}

TEST_CASE("a task that destroys its scheduler is then reported as without handlers, for these are gone") {
  int handled = 0;
  options o;
  o.on_error = [&](std::exception_ptr, const firing&) { ++handled; };
  o.slow_after = 1s;
  o.on_slow = [&](const slow_run&) { ++handled; };
  auto time = std::make_unique<manual_timer>(o);
  time->schedule_after(1ms, [&] {
    time->elapse(2s);
    time.reset();
    throw std::runtime_error("the last word");
  });
  const captured_cerr cerr;
  time->advance(1ms);
  CHECK(handled == 0);
  CHECK(cerr.lines() == 2);
  CHECK(cerr.text().find("the last word") != std::string::npos);
}

TEST_CASE("a scheduler may be destroyed inside a task that advance_to_next() runs") {
  auto time = std::make_unique<manual_timer>();
  time->schedule_after(1ms, [&] { time.reset(); });
  CHECK(time->advance_to_next() == 1);
  CHECK(time == nullptr);
}

TEST_CASE("a scheduler may be destroyed inside on_error") {
  std::unique_ptr<manual_timer> time;
  const auto in_handler = std::make_shared<int>(0);
  time = std::make_unique<manual_timer>(
      options{.on_error = [&time, in_handler](std::exception_ptr, const firing&) {
        ++*in_handler;
        time.reset();
        ++*in_handler;
      }});
  time->schedule_every(1ms, [] { throw 1; });
  CHECK(time->advance(1h) == 1);
  CHECK(*in_handler == 2);
  CHECK(in_handler.use_count() == 1);
}

TEST_CASE("a scheduler may be destroyed inside its executor, before and after the job") {
  for (const bool run_first : {true, false}) {
    std::unique_ptr<manual_timer> time;
    const auto token = std::make_shared<int>(0);
    time = std::make_unique<manual_timer>(options{.run_on = [&time, token, run_first](job j) {
      if (run_first) j();
      time.reset();
      j();
    }});
    int runs = 0;
    time->schedule_after(1ms, counting(runs));
    time->schedule_after(1ms, counting(runs));
    CHECK(time->advance(1h) == 1);
    CHECK(runs == (run_first ? 1 : 0));
    CHECK(token.use_count() == 1);
  }
}

TEST_CASE("a scheduler may be destroyed by the destructor of a callable after its run") {
  auto time = std::make_unique<manual_timer>();
  bool destroyed = false;
  time->schedule_after(1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) {
                               time.reset();
                               destroyed = true;
                             })] {});
  CHECK(time->advance(1h) == 1);
  CHECK(destroyed);
}

TEST_CASE("a scheduler may be destroyed inside a job that an executor runs later") {
  std::vector<job> jobs;
  auto time = std::make_unique<manual_timer>(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  const auto token = std::make_shared<int>(0);
  time->schedule_after(1ms, [&time, token] { time.reset(); });
  time->schedule_after(1ms, [token] { ++*token; });
  time->advance(1ms);
  REQUIRE(jobs.size() == 2);
  jobs[0]();
  CHECK(time == nullptr);
  CHECK(token.use_count() == 1);
  jobs[1]();
  CHECK(*token == 0);
}

TEST_CASE("a scheduler may be destroyed inside a task of another scheduler") {
  auto inner = std::make_unique<manual_timer>();
  manual_timer outer;
  inner->schedule_after(1h, doing_nothing());
  outer.schedule_after(1ms, [&] { inner.reset(); });
  CHECK(outer.advance(1ms) == 1);
  CHECK(inner == nullptr);
}

TEST_CASE("a task may drive another scheduler, but not its own from inside that one") {
  manual_timer outer, inner;
  journal ran;
  inner.schedule_after(1ms, [&] {
    ran.add("inner");
    CHECK_THROWS_AS(outer.advance(1ms), std::logic_error);  // still inside a task of the outer one
  });
  outer.schedule_after(1ms, [&] {
    inner.advance(1ms);
    ran.add("outer");
  });
  outer.advance(1ms);
  CHECK(ran.take() == "inner outer");
}

TEST_CASE("the destructor of a callable may destroy the scheduler inside a cancel() from outside") {
  auto time = std::make_shared<manual_timer>();
  manual_timer& still_there = *time;
  const std::weak_ptr<manual_timer> gone = time;
  const auto id = time->schedule_after(1ms, [time] {});
  time.reset();
  CHECK(still_there.cancel(id) == cancel_result::cancelled);
  CHECK(gone.expired());
}

TEST_CASE("the destructor of a callable may destroy the scheduler inside two nested calls of cancel()") {
  auto time = std::make_unique<manual_timer>();
  manual_timer& still_there = *time;
  const auto inner =
      time->schedule_after(1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) { time.reset(); })] {});
  const auto outer = time->schedule_after(
      1ms, [held = std::shared_ptr<void>(
                nullptr, [&](void*) { CHECK(still_there.cancel(inner) == cancel_result::cancelled); })] {});
  CHECK(still_there.cancel(outer) == cancel_result::cancelled);
  CHECK(time == nullptr);
}

TEST_CASE("a task may destroy the scheduler that drain() drives") {
  auto time = std::make_unique<manual_timer>();
  manual_timer& driven = *time;
  time->schedule_after(1ms, [&] { time.reset(); });
  time->schedule_after(1h, doing_nothing());
  CHECK(driven.drain(2h));  // nothing is pending by then
  CHECK(time == nullptr);
}

TEST_CASE("the destructor of a callable may destroy the scheduler in cancel_and_wait(), drain() and stop()") {
  for (const int call : {0, 1, 2}) {
    CAPTURE(call);
    auto time = std::make_shared<manual_timer>();
    manual_timer& still_there = *time;
    const std::weak_ptr<manual_timer> gone = time;
    const auto id = time->schedule_every(1ms, [time] {});
    time.reset();
    if (call == 0) CHECK(still_there.cancel_and_wait(id) == cancel_result::cancelled);
    if (call == 1) CHECK(still_there.drain(1s));
    if (call == 2) still_there.stop();
    CHECK(gone.expired());
  }
}

TEST_CASE(
    "the destructor of a timer's own executor may destroy the scheduler in cancel(), drain() and stop()") {
  for (const int call : {0, 1, 2}) {
    CAPTURE(call);
    auto time = std::make_shared<manual_timer>();
    manual_timer& still_there = *time;
    const std::weak_ptr<manual_timer> gone = time;
    const auto id = time->schedule_every(1ms, doing_nothing(), rondo::on([time](job j) { j(); }));
    time.reset();
    if (call == 0) CHECK(still_there.cancel(id) == cancel_result::cancelled);
    if (call == 1) CHECK(still_there.drain(1s));
    if (call == 2) CHECK(still_there.stop().size() == 1);
    CHECK(gone.expired());
  }
}

TEST_CASE("an unused scheduler can be destroyed") { const manual_timer time; }

TEST_CASE("the handlers are released with the scheduler, even after stop()") {
  const auto token = std::make_shared<int>(0);
  {
    manual_timer time(options{.run_on = [token](job j) { j(); },
                              .on_error = [token](std::exception_ptr, const firing&) {}});
    time.stop();
  }
  CHECK(token.use_count() == 1);
}

}  // namespace scheduler_destruction
