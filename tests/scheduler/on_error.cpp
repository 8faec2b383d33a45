// Tasks, executors and handlers that throw.
#include <iostream>
#include <stdexcept>

#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_on_error {

using namespace rondo;
using namespace rondo::test;

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (const int number) {
    return std::to_string(number);
  } catch (...) {
    return "?";
  }
}

TEST_CASE("on_error gets the exception and the run that threw it") {
  journal errors;
  std::vector<firing> runs;
  manual_timer time(options{.on_error = [&](std::exception_ptr thrown, const firing& f) {
    errors.add(text_of(thrown));
    runs.push_back(f);
  }});
  const auto id = time.schedule_after(1'300us, [] { throw std::runtime_error("no"); });
  time.schedule_after(2ms, [] { throw 42; });
  struct stranger {};
  time.schedule_after(2ms, [] { throw stranger{}; });
  CHECK(time.advance(2ms) == 3);
  CHECK(errors.take() == "no 42 ?");
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].id == id);
  CHECK(runs[0].due == at(1'300us));
  CHECK(runs[0].lateness == 700us);
  CHECK(runs[0].run == 1);
}

TEST_CASE("a run that threw is counted in fired, failed and completed") {
  manual_timer time(options{.on_error = [](std::exception_ptr, const firing&) {}});
  time.schedule_after(1ms, [] { throw 1; });
  CHECK(time.advance(1ms) == 1);
  CHECK(time.stats().fired == 1);
  CHECK(time.stats().failed == 1);
  CHECK(time.stats().completed == 1);
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("a task that throws does not affect others of its tick") {
  manual_timer time(options{.on_error = [](std::exception_ptr, const firing&) {}});
  int runs = 0;
  time.schedule_after(1ms, counting(runs));
  time.schedule_after(1ms, [] { throw 1; });
  time.schedule_after(1ms, counting(runs));
  CHECK(time.advance(1ms) == 3);
  CHECK(runs == 2);
}

TEST_CASE("a periodic task that throws continues on its grid") {
  std::vector<firing> failed;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing& f) { failed.push_back(f); }});
  std::vector<firing> runs;
  const auto id = time.schedule_every(100ms, [&](const firing& f) {
    runs.push_back(f);
    if (f.run % 2 == 1) throw 1;
  });
  time.advance(500ms);
  CHECK(runs.size() == 5);
  CHECK(failed.size() == 3);
  CHECK(runs[4].due == at(500ms));
  CHECK(time.pending(id));
  CHECK(time.stats().failed == 3);
  CHECK(time.stats().fired == 5);
  CHECK(time.stats().completed == 0);
}

TEST_CASE("without on_error an exception of a task makes one line on std::cerr") {
  const captured_cerr cerr;
  manual_timer time;
  SUBCASE("a standard exception") {
    time.schedule_after(1ms, [] { throw std::runtime_error("the disk is full"); });
    time.advance(1ms);
    CHECK(cerr.text().find("the disk is full") != std::string::npos);
  }
  SUBCASE("a text of several lines") {
    time.schedule_after(1ms, [] { throw std::runtime_error("one\ntwo\n"); });
    time.advance(1ms);
  }
  SUBCASE("anything else") {
    time.schedule_after(1ms, [] { throw 1; });
    time.advance(1ms);
  }
  CHECK(cerr.lines() == 1);
  CHECK(cerr.text().find("rondo") != std::string::npos);
}

TEST_CASE("without on_error a throwing executor makes one line on std::cerr") {
  const captured_cerr cerr;
  manual_timer time(options{.run_on = [](const job&) { throw std::runtime_error("no thread left"); }});
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(cerr.lines() == 1);
  CHECK(cerr.text().find("no thread left") != std::string::npos);
}

TEST_CASE("an on_error that throws makes one line on std::cerr, and nothing else") {
  const captured_cerr cerr;
  int calls = 0;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing&) {
    ++calls;
    throw std::runtime_error("also no");
  }});
  int runs = 0;
  time.schedule_after(1ms, [] { throw 1; });
  time.schedule_after(1ms, counting(runs));
  CHECK(time.advance(1ms) == 2);
  CHECK(calls == 1);
  CHECK(runs == 1);
  CHECK(cerr.lines() == 1);
  CHECK(time.stats().failed == 1);
}

TEST_CASE("a std::cerr that throws does no harm") {
  const captured_cerr cerr;
  const auto old = std::cerr.exceptions();
  std::cerr.setstate(std::ios::badbit);
  try {
    std::cerr.exceptions(std::ios::badbit);
  } catch (const std::ios_base::failure&) {  // thrown at once, because the stream is already bad
  }
  manual_timer time;
  int runs = 0;
  time.schedule_after(1ms, [] { throw 1; });
  time.schedule_after(1ms, counting(runs));
  CHECK(time.advance(1ms) == 2);
  std::cerr.exceptions(std::ios::goodbit);
  std::cerr.clear();
  std::cerr.exceptions(old);
  CHECK(runs == 1);
}

TEST_CASE("on_error may use the scheduler") {
  manual_timer* timer = nullptr;
  int runs = 0;
  manual_timer time(options{.on_error = [&](std::exception_ptr, const firing& f) {
    CHECK_FALSE(timer->pending(f.id));
    CHECK_THROWS_AS(timer->advance(1ms), std::logic_error);  // called from inside
    timer->schedule_after(1ms, counting(runs));
  }});
  timer = &time;
  time.schedule_after(1ms, [] { throw 1; });
  CHECK(time.advance(2ms) == 2);
  CHECK(runs == 1);
}

TEST_CASE("on_error is called where the job runs") {
  std::vector<job> jobs;
  int reported = 0;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); },
                            .on_error = [&](std::exception_ptr, const firing&) { ++reported; }});
  time.schedule_after(1ms, [] { throw 1; });
  time.advance(1ms);
  CHECK(reported == 0);
  jobs.at(0)();
  CHECK(reported == 1);
  CHECK(time.stats().failed == 1);
}

TEST_CASE("an empty task is refused by every call") {
  manual_timer time;
  void (*const no_function)() = nullptr;
  const std::function<void()> no_std_function;
  CHECK_THROWS_AS(time.schedule_after(1ms, rondo::task()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_at(at(1ms), nullptr), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(1ms, no_function), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_after(1ms, no_std_function), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule_every(1ms, std::function<void(const firing&)>()), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
  CHECK(time.pending() == 0);
}

}  // namespace scheduler_on_error
