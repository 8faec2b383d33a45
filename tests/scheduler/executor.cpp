// options::run_on: jobs, and what an executor may do with them.
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "scheduler/virtual_time.hpp"

namespace scheduler_executor {

using namespace rondo;
using namespace rondo::test;

/// A timer whose jobs are kept until the test uses them.
struct keeping {
  std::vector<job> jobs;
  manual_timer time{options{.run_on = [this](job j) { jobs.push_back(std::move(j)); }}};
};

TEST_CASE("jobs are submitted in order when they are due, and their tasks run when the jobs are called") {
  keeping k;
  journal ran;
  k.time.schedule_after(2ms, ran.noting("c"));
  k.time.schedule_after(1ms, ran.noting("a"));
  k.time.schedule_after(1ms, ran.noting("b"));
  CHECK(k.time.advance(1ms - 1ns) == 0);
  CHECK(k.time.advance(2ms) == 3);
  REQUIRE(k.jobs.size() == 3);
  CHECK(ran.take() == "");
  SUBCASE("in order") {
    for (job& j : k.jobs) j();
    CHECK(ran.take() == "a b c");
  }
  SUBCASE("out of order") {
    for (auto j = k.jobs.rbegin(); j != k.jobs.rend(); ++j) (*j)();
    CHECK(ran.take() == "c b a");
  }
  CHECK(k.time.stats().fired == 3);
  CHECK(k.time.stats().completed == 3);
}

TEST_CASE("lateness is measured up to the start of the run, not up to the submission") {
  keeping k;
  std::vector<firing> runs;
  const auto id = k.time.schedule_after(1'400us, recording(runs));
  k.time.advance(2ms);
  k.time.elapse(10ms);
  k.jobs.at(0)();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].id == id);
  CHECK(runs[0].due == at(1'400us));
  CHECK(runs[0].lateness == 10'600us);
  CHECK(runs[0].run == 1);
}

TEST_CASE("an executor may run the job at once") {
  manual_timer time(options{.run_on = [](job j) { j(); }});
  journal ran;
  time.schedule_after(1ms, [&] {
    ran.add("a");
    time.schedule_after(0s, ran.noting("c"));
  });
  time.schedule_after(1ms, ran.noting("b"));
  CHECK(time.advance(1ms) == 3);
  CHECK(ran.take() == "a b c");
  CHECK(time.stats().completed == 3);
  CHECK(time.stats().rejected == 0);
}

TEST_CASE("a job can be called once: afterwards, or after a move from it, it is spent") {
  keeping k;
  int runs = 0;
  k.time.schedule_after(1ms, counting(runs));
  k.time.advance(1ms);
  job second = std::move(k.jobs.at(0));
  k.jobs[0]();
  CHECK(runs == 0);
  second();
  CHECK(runs == 1);
  second();
  CHECK(runs == 1);
  job empty;
  empty();
  empty = std::move(second);
  empty();
  CHECK(runs == 1);
  k.jobs.clear();
  CHECK(k.time.stats().rejected == 0);
}

TEST_CASE("a job that is destroyed without having been called is rejected, and its callable is destroyed") {
  keeping k;
  const auto token = std::make_shared<int>(0);
  const auto id = k.time.schedule_after(1ms, [token] { ++*token; });
  k.time.advance(1ms);
  SUBCASE("destroyed") { k.jobs.clear(); }
  SUBCASE("overwritten by assignment") { k.jobs.at(0) = job(); }
  CHECK(token.use_count() == 1);
  CHECK(*token == 0);
  CHECK_FALSE(k.time.pending(id));
  CHECK(k.time.cancel(id) == cancel_result::gone);
  CHECK(k.time.stats().rejected == 1);
  CHECK(k.time.stats().completed == 1);
  CHECK(k.time.stats().fired == 0);
  CHECK(k.time.stats().failed == 0);
  CHECK(adds_up(k.time.stats()));
}

TEST_CASE("an executor that does nothing with its job rejects it") {
  manual_timer time(options{.run_on = [](const job&) {}});
  const auto token = std::make_shared<int>(0);
  time.schedule_after(1ms, [token] {});
  CHECK(time.advance(1ms) == 1);
  CHECK(token.use_count() == 1);
  CHECK(time.stats().rejected == 1);
  CHECK(time.stats().completed == 1);
  CHECK(time.pending() == 0);
}

TEST_CASE("a job that is assigned to itself does not change") {
  keeping k;
  int runs = 0;
  k.time.schedule_after(1ms, counting(runs));
  k.time.advance(1ms);
  job& j = k.jobs.at(0);
  job& same = j;
  j = std::move(same);
  j();
  CHECK(runs == 1);
}

TEST_CASE("a cancelled job does nothing, and is not rejected when it is dropped") {
  keeping k;
  int runs = 0;
  const auto id = k.time.schedule_after(1ms, counting(runs));
  k.time.advance(1ms);
  CHECK(k.time.pending(id));
  CHECK(k.time.cancel(id) == cancel_result::cancelled);
  SUBCASE("called") { k.jobs.at(0)(); }
  SUBCASE("dropped") { k.jobs.clear(); }
  CHECK(runs == 0);
  CHECK(k.time.stats().rejected == 0);
  CHECK(k.time.stats().completed == 0);
  CHECK(k.time.stats().cancelled == 1);
}

TEST_CASE("an old job does not affect later timers") {
  keeping k;
  journal ran;
  k.time.cancel(k.time.schedule_after(1ms, ran.noting("x")));
  for (int round = 0; round != 200; ++round) {  // enough for every slot to be used again
    const auto id = k.time.schedule_after(0s, ran.noting("old"));
    k.time.advance(0s);
    k.time.cancel(id);
  }
  std::vector<rondo::timer_id> fresh;
  for (int i = 0; i != 200; ++i) fresh.push_back(k.time.schedule_after(1ms, ran.noting("new")));
  for (job& j : k.jobs) j();
  k.jobs.clear();
  CHECK(ran.take() == "");
  for (const auto id : fresh) CHECK(k.time.pending(id));
  CHECK(k.time.stats().rejected == 0);
}

TEST_CASE("after stop() a job does nothing, and its task is in the list") {
  keeping k;
  int runs = 0;
  const auto id = k.time.schedule_after(1ms, counting(runs));
  k.time.advance(1ms);
  auto list = k.time.stop();
  REQUIRE(list.size() == 1);
  CHECK(list[0].id == id);
  k.jobs.at(0)();
  CHECK(runs == 0);
  list[0].work();
  CHECK(runs == 1);
  k.jobs.clear();
  CHECK(k.time.stats().rejected == 0);
  CHECK(k.time.stats().returned == 1);
}

TEST_CASE("jobs may outlive the scheduler, and then do nothing") {
  std::vector<job> jobs;
  const auto token = std::make_shared<int>(0);
  const auto in_handlers = std::make_shared<int>(0);
  {
    manual_timer time(options{.run_on = [&jobs, in_handlers](job j) { jobs.push_back(std::move(j)); },
                              .on_error = [in_handlers](std::exception_ptr, const firing&) {}});
    time.schedule_after(1ms, [token] { ++*token; });
    time.schedule_every(1ms, [token] { ++*token; });
    time.advance(1ms);
    CHECK(jobs.size() == 2);
  }
  CHECK(token.use_count() == 1);
  CHECK(in_handlers.use_count() == 1);  // the scheduler released them
  SUBCASE("called") {
    for (job& j : jobs) j();
  }
  SUBCASE("dropped") { jobs.clear(); }
  CHECK(*token == 0);
}

TEST_CASE("an executor may own the jobs it keeps, and is destroyed with the scheduler") {
  struct queue {
    std::deque<job> jobs;
  };
  const auto q = std::make_shared<queue>();
  std::weak_ptr<queue> watch = q;
  int runs = 0;
  {
    manual_timer time(options{.run_on = [q](job j) { q->jobs.push_back(std::move(j)); }});
    time.schedule_after(1ms, counting(runs));
    time.advance(1ms);
  }
  CHECK(q.use_count() == 1);
  q->jobs.front()();
  CHECK(runs == 0);
}

TEST_CASE("a throwing executor is reported once, and only as failed, even if it kept the job") {
  std::vector<job> kept;
  std::vector<firing> reported;
  bool keeps = false;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (keeps) kept.push_back(std::move(j));
                                  throw std::runtime_error("full");
                                },
                            .on_error = [&](std::exception_ptr, const firing& f) { reported.push_back(f); }});
  const auto token = std::make_shared<int>(0);
  SUBCASE("it dropped the job") {}
  SUBCASE("it kept the job") { keeps = true; }
  const auto id = time.schedule_after(1'500us, [token] { ++*token; });
  CHECK(time.advance(2ms) == 1);
  CHECK(token.use_count() == 1);
  CHECK_FALSE(time.pending(id));
  for (job& j : kept) j();
  kept.clear();
  CHECK(*token == 0);
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].id == id);
  CHECK(reported[0].due == at(1'500us));
  CHECK(reported[0].run == 1);
  CHECK(time.stats().failed == 1);
  CHECK(time.stats().rejected == 0);
  CHECK(time.stats().fired == 0);
  CHECK(time.stats().completed == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("if an executor throws after running the job, it is counted as failed and the run as fired") {
  int reported = 0;
  manual_timer time(options{.run_on =
                                [](job j) {
                                  j();
                                  throw 1;
                                },
                            .on_error = [&](std::exception_ptr, const firing&) { ++reported; }});
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.advance(1ms);
  CHECK(runs == 1);
  CHECK(reported == 1);
  CHECK(time.stats().fired == 1);
  CHECK(time.stats().failed == 1);
  CHECK(time.stats().completed == 1);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a throwing executor does not affect other tasks of its pass") {
  int calls = 0, runs = 0;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (++calls % 2 == 1) throw 1;
                                  j();
                                },
                            .on_error = [](std::exception_ptr, const firing&) {}});
  for (int i = 0; i != 10; ++i) time.schedule_after(1ms, counting(runs));
  CHECK(time.advance(1ms) == 10);
  CHECK(runs == 5);
}

TEST_CASE("an executor that drops a job and cancels its timer does not affect the next timer's job") {
  std::vector<job> kept;
  manual_timer* timer = nullptr;
  rondo::timer_id first;
  manual_timer time(options{.run_on = [&](job j) {
    if (first != rondo::timer_id()) {
      { const job dropped = std::move(j); }
      timer->cancel(std::exchange(first, {}));
    } else {
      kept.push_back(std::move(j));
    }
  }});
  timer = &time;
  first = time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  int runs = 0;
  time.schedule_after(1ms, counting(runs));  // in the record that the first timer has left
  time.advance(1ms);
  REQUIRE(kept.size() == 1);
  kept[0]();
  CHECK(runs == 1);
  CHECK(time.stats().cancelled == 1);
  CHECK(time.stats().rejected == 0);
}

TEST_CASE("a job may be destroyed by the task that it runs") {
  keeping k;
  bool ran = false;
  k.time.schedule_after(1ms, [&] {
    k.jobs.clear();
    ran = true;
  });
  k.time.advance(1ms);
  k.jobs.at(0)();
  CHECK(ran);
  CHECK(k.time.stats().rejected == 0);
  CHECK(k.time.stats().completed == 1);
}

}  // namespace scheduler_executor
