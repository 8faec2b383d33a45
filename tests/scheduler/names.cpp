// The name of a timer: where it is set, and where it is shown.
#include <sstream>
#include <stdexcept>
#include <string>

#include <rondo/timer_scope.hpp>

#include "failing_new.hpp"
#include "scheduler/captured_cerr.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_names {

using namespace rondo;
using namespace rondo::test;

const std::string long_name = "a name that no string keeps within itself, so that it takes memory of its own";

TEST_CASE("every scheduling call takes a name, and each run gets it") {
  manual_timer time;
  timer_scope scope(time);
  journal names;
  const auto noting = [&](const firing& f) { names.add(std::string(f.name)); };
  time.schedule_after(1s, noting, {.name = "after"});
  time.schedule_at(at(1s), noting, {.name = "at"});
  time.schedule_every(1s, noting, {.name = "every"});
  time.schedule(every(1s).times(1), noting, {.name = "recurrence"});
  time.schedule_after(1s, task(noting), {.name = "task"});
  scope.schedule_after(1s, noting, {.name = "scope-after"});
  scope.schedule_at(at(1s), noting, {.name = "scope-at"});
  scope.schedule_every(1s, noting, {.name = "scope-every"});
  scope.schedule(every(1s).times(1), noting, {.name = "scope-recurrence"});
  CHECK(time.advance(1s) == 9);
  CHECK(names.take() == "after at every recurrence task scope-after scope-at scope-every scope-recurrence");
  time.advance(1s);
  CHECK(names.take() == "every scope-every");
}

TEST_CASE("a timer without a name has an empty one, even if its record had a name before") {
  manual_timer time;
  const auto check = [](const firing& f) { CHECK(f.name.empty()); };
  for (int i = 0; i != 200; ++i) {
    time.schedule_after(1ms, [](const firing& f) { CHECK(f.name == "named"); }, {.name = "named"});
    time.advance(1ms);
    time.schedule_after(1ms, check);
    time.schedule_after(1ms, check, timer_options{});
    time.advance(1ms);
  }
  CHECK(time.stats().fired == 600);
}

TEST_CASE("a timer may have both an executor and a name") {
  std::vector<job> jobs;
  manual_timer time;
  std::string seen;
  time.schedule_after(1s, [&](const firing& f) { seen = f.name; },
                      {.run_on = [&](job j) { jobs.push_back(std::move(j)); }, .name = "on a shelf"});
  time.advance(1s);
  REQUIRE(jobs.size() == 1);
  CHECK(seen.empty());
  jobs[0]();
  CHECK(seen == "on a shelf");
}

TEST_CASE("a timer with only a name runs where the scheduler's other timers run") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  std::string once, often;
  time.schedule_after(1s, [&](const firing& f) { once = f.name; }, {.name = "once"});
  time.schedule_every(1s, [&](const firing& f) { often = f.name; }, {.name = "often"});
  time.advance(1s);
  REQUIRE(jobs.size() == 2);
  jobs[0]();
  jobs[1]();
  CHECK(once == "once");
  CHECK(often == "often");
}

TEST_CASE("a name is valid until the last run is over, even if the timer is cancelled in that run") {
  manual_timer time;
  std::string seen;
  const auto work = [&](const firing& f) {
    time.cancel(f.id);
    time.schedule_after(1s, doing_nothing());
    seen = f.name;
  };
  time.schedule_every(1s, work, {.name = long_name});
  time.advance(1s);
  CHECK(seen == long_name);
}

TEST_CASE("on_error and on_slow get the name") {
  journal told;
  manual_timer time(
      {.on_error = [&](std::exception_ptr, const firing& f) { told.add("error:" + std::string(f.name)); },
       .slow_after = 1ms,
       .on_slow = [&](const slow_run& s) { told.add("slow:" + std::string(s.what.name)); }});
  time.schedule_after(1s,
                      [&] {
                        time.elapse(1s);
                        throw 1;
                      },
                      {.name = long_name});
  time.advance(1s);
  CHECK(told.take() == "error:" + long_name + " slow:" + long_name);
  time.schedule_after(1s, doing_nothing(), {.run_on = [](job) { throw 1; }, .name = "refused"});
  time.advance(1s);
  CHECK(told.take() == "error:refused");
}

TEST_CASE("stop() hands back the names") {
  manual_timer time;
  time.schedule_after(2s, doing_nothing(), {.name = long_name});
  time.schedule_after(1s, doing_nothing());
  time.schedule_every(3s, doing_nothing(), {.name = "short"});
  time.schedule_after(duration::max(), doing_nothing(), {.name = "never"});
  const auto list = time.stop();
  REQUIRE(list.size() == 4);
  CHECK(list[0].name.empty());
  CHECK(list[1].name == long_name);
  CHECK(list[2].name == "short");
  CHECK(list[3].name == "never");
}

TEST_CASE("without memory for the names stop() throws and loses no timer" *
          doctest::skip(!failing_new::available)) {
  manual_timer time;
  for (int i = 0; i != 3; ++i) time.schedule_after(1s, doing_nothing(), {.name = long_name});
  std::vector<unfired> list;
  int refusals = 0;
  for (std::size_t allocations = 0; list.empty(); ++allocations) {
    try {
      const failing_new failing(allocations);
      list = time.stop();
    } catch (const std::bad_alloc&) {
      ++refusals;
    }
  }
  CHECK(refusals >= 5);  // two lists, the names, and each single name
  REQUIRE(list.size() == 3);
  for (const unfired& u : list) CHECK(u.name == long_name);
}

TEST_CASE("without memory for the options nothing is scheduled" * doctest::skip(!failing_new::available)) {
  manual_timer time;
  const timer_options with{.name = long_name};
  bool is_scheduled = false;
  int refusals = 0;
  for (std::size_t allocations = 0; !is_scheduled; ++allocations) {
    try {
      timer_options given = with;
      const failing_new failing(allocations);
      time.schedule_after(1s, doing_nothing(), std::move(given));
      is_scheduled = true;
    } catch (const std::bad_alloc&) {
      CHECK(time.pending() == 0);
      CHECK(time.stats().scheduled == 0);
      ++refusals;
    }
  }
  CHECK(refusals >= 1);
  CHECK(time.pending() == 1);
}

TEST_CASE("empty options allocate nothing" * doctest::skip(!failing_new::available)) {
  manual_timer time;
  time.schedule_after(1s, doing_nothing());  // creates records
  const failing_new failing;
  time.schedule_after(1s, doing_nothing(), timer_options{});
  CHECK(time.pending() == 2);
}

TEST_CASE("the default messages have the id and the name") {
  const captured_cerr cerr;
  manual_timer time({.slow_after = 1ms});
  std::string expected;
  SUBCASE("of a task that throws") {
    const auto id = time.schedule_after(1s, [] { throw std::runtime_error("no"); }, {.name = "report"});
    expected = "rondo: a task (timer " + to_string(id) + " \"report\") threw: no\n";
  }
  SUBCASE("of a slow one without a name") {
    const auto id = time.schedule_after(1s, [&] { time.elapse(1500ms); });
    expected = "rondo: a task (timer " + to_string(id) + ") ran for 1.5 s";
  }
  SUBCASE("on one line, whatever the name is") {
    const auto id = time.schedule_after(1s, [] { throw 1; }, {.name = "two\nlines\x7f"});
    expected = "rondo: a task (timer " + to_string(id) + " \"two lines \") threw";
  }
  time.advance(1s);
  CHECK(cerr.text().substr(0, expected.size()) == expected);
  CHECK(cerr.lines() == 1);
}

TEST_CASE("dump() shows the timers that have a name, and what they wait for") {
  std::vector<job> jobs;
  manual_timer time;
  const auto shelf = [&](job j) { jobs.push_back(std::move(j)); };
  const auto a = time.schedule_every(3s, doing_nothing(), {.name = "a"});
  const auto b = time.schedule_after(1s, doing_nothing(), {.run_on = shelf, .name = "b"});
  const auto c = time.schedule_after(duration::max(), doing_nothing(), {.name = "c"});
  const auto d = time.schedule_after(1s, doing_nothing(), {.name = "d"});
  time.schedule_after(2s, doing_nothing());
  std::ostringstream out;
  const auto e = time.schedule_after(3500ms, [&] { time.dump(out); }, {.name = "e"});
  time.reschedule_at(d, at(7s));
  time.advance(3s);
  time.elapse(4s);
  time.reschedule_at(a, at(6500ms));
  time.reschedule_at(d, at(8s));
  time.advance(0s);
  const auto line = [](timer_id id, const char* rest) { return "    timer " + to_string(id) + rest; };
  const std::string expected = "  with a name, the earliest first:\n" +
                               line(a, " \"a\", late 500 ms, 1 run so far\n") + line(d, " \"d\", in 1 s\n") +
                               line(c, " \"c\", never due\n");
  CAPTURE(out.str());
  CHECK(out.str().find(expected) != std::string::npos);
  CHECK(out.str().find(line(b, " \"b\", with the executor\n")) != std::string::npos);
  CHECK(out.str().find(line(e, " \"e\", running\n")) != std::string::npos);
}

TEST_CASE("dump() shows at most sixteen names") {
  manual_timer time;
  for (int i = 0; i != 20; ++i) time.schedule_after(1s, doing_nothing(), {.name = "x"});
  std::ostringstream out;
  time.dump(out);
  std::size_t names = 0;
  for (auto found = out.str().find("\"x\""); found != std::string::npos;
       found = out.str().find("\"x\"", found + 1))
    ++names;
  CHECK(names == 16);
  CHECK(out.str().find("    … and 4 more\n") != std::string::npos);
}

}  // namespace scheduler_names
