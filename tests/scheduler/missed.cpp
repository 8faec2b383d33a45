// What happens to missed points: recurrences on virtual time, inline.
#include <rondo/polled_timer.hpp>

#include "scheduler/virtual_time.hpp"

namespace scheduler_missed {

using namespace rondo;
using namespace rondo::test;

/// The runs with a stall from 300 ms until 950 ms, up to `end`: "300@300 600@950+1" is due@start+missed.
std::string runs_of(const recurrence& r, duration end = 1600ms) {
  manual_timer time;
  journal what;
  time.schedule(r, [&](const firing& f) {
    const auto ms = [](duration d) { return std::to_string(d / 1ms); };
    what.add(ms(f.due.time_since_epoch()) + '@' + ms(since_epoch(time)) +
             (f.missed == 0 ? "" : '+' + std::to_string(f.missed)));
    CHECK(f.lateness == time.now() - f.due);
  });
  time.advance(300ms);
  time.elapse(650ms);
  time.advance(0s);
  time.advance(end - 950ms);
  return what.take();
}

TEST_CASE("missed points are skipped, made up for, or delay the following ones") {
  CHECK(runs_of(every(300ms)) == "300@300 600@950+1 1200@1200 1500@1500");
  CHECK(runs_of(every(300ms).on_missed(missed_runs::burst)) == "300@300 600@950 900@950 1200@1200 1500@1500");
  CHECK(runs_of(every(300ms).on_missed(missed_runs::burst, 1)) == "300@300 900@950+1 1200@1200 1500@1500");
  CHECK(runs_of(every(300ms).on_missed(missed_runs::delay)) == "300@300 600@950+1 1250@1250 1550@1550");
  CHECK(runs_of(after_completion(300ms)) == "300@300 600@950 1250@1250 1550@1550");
}

TEST_CASE("times() counts runs, not missed points") {
  CHECK(runs_of(every(300ms).times(3)) == "300@300 600@950+1 1200@1200");
  CHECK(runs_of(every(300ms).times(2)) == "300@300 600@950+1");
  CHECK(runs_of(every(300ms).times(2).on_missed(missed_runs::burst)) == "300@300 600@950");
}

TEST_CASE("points of a list that passed during a stall are gone") {
  CHECK(runs_of(intervals({300ms, 300ms, 300ms, 300ms})) == "300@300 600@950+1 1200@1200");
  CHECK(runs_of(intervals({300ms, 300ms, 300ms})) == "300@300 600@950+1");
  CHECK(runs_of(intervals({300ms, 300ms, 300ms}).on_missed(missed_runs::burst)) == "300@300 600@950 900@950");
}

TEST_CASE("the late runs of a burst take their turn among other tasks") {
  manual_timer time;
  journal what;
  time.schedule(every(300ms).on_missed(missed_runs::burst), what.noting("often"));
  time.schedule_after(500ms, what.noting("at-500"));
  time.schedule_after(900ms, what.noting("at-900"));
  time.schedule_after(920ms, what.noting("at-920"));
  time.elapse(950ms);
  CHECK(time.advance(0s) == 6);
  CHECK(what.take() == "often at-500 often at-900 often at-920");
}

TEST_CASE(
    "after a limit a late run follows timers that are due before it, whatever was cancelled in between") {
  polled_timer timer({.tick = 1ms});
  journal what;
  const auto start = timer.now() - 1h;  // everything is late, and each deadline keeps its own tick
  const auto burst = every(3ms).times(2).on_missed(missed_runs::burst, 10'000'000);
  const auto often = timer.schedule(burst, what.noting("often"));
  CHECK(timer.reschedule_at(often, start + 5ms));
  const auto left = timer.schedule_at(start + 20ms, what.noting("left"));
  CHECK(timer.poll(1) == 1);
  timer.schedule_at(start + 7ms, what.noting("before"));
  SUBCASE("the timer that the limit has left comes first") {
    CHECK(timer.poll() == 3);
    CHECK(what.take() == "often often left before");
  }
  SUBCASE("it was cancelled") {
    timer.cancel(left);
    CHECK(timer.poll() == 2);
    CHECK(what.take() == "often before often");
  }
  SUBCASE("it was moved") {
    CHECK(timer.reschedule_at(left, start + 30ms));
    CHECK(timer.poll() == 3);
    CHECK(what.take() == "often before often left");
  }
}

TEST_CASE("tasks that a late run makes due run in the next pass, after all late runs") {
  manual_timer time;
  journal what;
  time.schedule(every(100ms).on_missed(missed_runs::burst), [&](const firing& f) {
    what.add("run");
    if (f.run == 1) time.schedule_at(at(50ms), what.noting("made-due"));
  });
  time.elapse(350ms);
  time.advance(0s);
  CHECK(what.take() == "run run run made-due");
}

TEST_CASE("a late run that jitter puts before the current one is not lost") {
  manual_timer time;
  journal what;
  // A gap of 1 ms follows one of 1 s, so with this jitter the second run is due before the first.
  const auto r = cycle({1s, 1ms}).times(2).jitter(1, 2).on_missed(missed_runs::burst);
  REQUIRE(r.first(at(0s)).due > at(1002ms));
  const auto id = time.schedule(r, what.noting("run"));
  time.schedule_after(2s, what.noting("other"));
  time.elapse(3s);
  CHECK(time.advance(0s) == 3);
  CHECK(what.take() == "run run other");
  CHECK(!time.pending(id));
}

TEST_CASE("when a burst exceeds its limit, no run starts before its jitter is over") {
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    CAPTURE(seed);
    manual_timer time;
    std::vector<firing> runs;
    time.schedule(every(100ms).jitter(1, seed).on_missed(missed_runs::burst, 1), [&](const firing& f) {
      runs.push_back(f);
      CHECK(f.due <= time.now());
      CHECK(f.lateness == time.now() - f.due);
    });
    time.elapse(1050ms);
    time.advance(1s);
    CHECK(time.stats().missed == runs[0].missed);
    CHECK(time.stats().missed + time.stats().fired >= 19);
  }
}

TEST_CASE("a late run may be cancelled, moved or stopped by the run before it") {
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    manual_timer time;
    int runs = 0;
    rondo::timer_id id;
    std::vector<rondo::unfired> rest;
    id = time.schedule(every(100ms).on_missed(missed_runs::burst), [&] {
      if (++runs != 2) return;
      if (what == 0) CHECK(time.cancel(id) == rondo::cancel_result::running);
      if (what == 1) CHECK(time.reschedule_after(id, 1s));
      if (what == 2) rest = time.stop();
    });
    time.elapse(550ms);
    time.advance(0s);
    CHECK(runs == 2);
    CHECK(time.next_due() == (what == 1 ? std::optional(at(1550ms)) : std::nullopt));
    CHECK(rest.empty());
    CHECK(adds_up(time.stats()));
  }
}

TEST_CASE("a slow task misses points of its own grid") {
  manual_timer time;
  std::vector<firing> runs;
  time.schedule(every(100ms), [&](const firing& f) {
    runs.push_back(f);
    if (f.run == 2) time.elapse(250ms);
  });
  time.advance(600ms);
  REQUIRE(runs.size() == 5);  // at 100, 200, 300 (late, misses 400), 500 and 600
  CHECK(runs[2].due == at(300ms));
  CHECK(runs[2].lateness == 150ms);
  CHECK(runs[2].missed == 1);
  CHECK(runs[3].due == at(500ms));
  CHECK(time.stats().missed == 1);
}

TEST_CASE("a period that is not a multiple of the tick does not drift") {
  manual_timer time;
  constexpr duration period = 333'400us;
  std::int64_t runs = 0;
  time.schedule(every(period), [&](const firing& f) {
    REQUIRE(f.due == at(++runs * period));
    REQUIRE(f.lateness < 1ms);
  });
  time.advance(100'000 * period);
  CHECK(runs == 100'000);
}

TEST_CASE("a recurrence ends by itself") {
  manual_timer time;
  int runs = 0;
  const auto token = std::make_shared<int>(0);
  const auto id = time.schedule(intervals({1s, 2s, 5s}), [&runs, token] { ++runs; });
  time.advance(7999ms);
  CHECK(runs == 2);
  CHECK(time.pending(id));
  time.advance(1ms);
  CHECK(runs == 3);
  CHECK(!time.pending(id));
  CHECK(time.cancel(id) == rondo::cancel_result::gone);
  CHECK(token.use_count() == 1);
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().fired == 3);
  CHECK(time.pending() == 0);
  CHECK(!time.next_due());
}

TEST_CASE("inside its last run a timer is not pending, and cannot be moved") {
  manual_timer time;
  rondo::timer_id id;
  std::string seen;
  id = time.schedule(every(1s).times(2), [&] {
    seen += time.pending(id) ? 'p' : '-';
    seen += time.reschedule_after(id, time.pending(id) ? 1s : 5s) ? 'm' : '-';
    seen += time.pending() == 1 ? '1' : '0';
  });
  time.advance(10s);
  CHECK(seen == "pm1--0");
  CHECK(time.cancel(id) == rondo::cancel_result::gone);
}

TEST_CASE("cancel() inside the last run returns running") {
  manual_timer time;
  rondo::timer_id id;
  auto said = rondo::cancel_result::gone;
  id = time.schedule(every(1s).times(1), [&] { said = time.cancel(id); });
  time.advance(1s);
  CHECK(said == rondo::cancel_result::running);
  CHECK(time.stats().completed == 1);
  CHECK(time.stats().cancelled == 0);
}

TEST_CASE("after_completion() counts from the end of the run, even if the run threw") {
  manual_timer time({.on_error = [](std::exception_ptr, const firing&) {}});
  std::vector<firing> runs;
  time.schedule(after_completion(100ms), [&](const firing& f) {
    runs.push_back(f);
    time.elapse(1s);
    throw 1;
  });
  time.advance(5s);
  REQUIRE(runs.size() == 5);
  for (std::size_t i = 0; i != runs.size(); ++i)
    CHECK(runs[i].due == at((static_cast<int>(i) + 1) * 100ms + static_cast<int>(i) * 1s));
  CHECK(time.stats().failed == 5);
}

TEST_CASE("an after_completion() timer that is moved inside its run continues from there") {
  manual_timer time;
  std::vector<firing> runs;
  rondo::timer_id id;
  id = time.schedule(after_completion(100ms), [&](const firing& f) {
    runs.push_back(f);
    if (f.run == 1) CHECK(time.reschedule_after(id, 30ms));
  });
  time.advance(300ms);
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].due == at(130ms));
  CHECK(runs[2].due == at(230ms));
}

TEST_CASE("the grid of a list continues from the time that its next run was moved to") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule(cycle({1s, 2s, 5s}), recording(runs));
  time.advance(1s);
  CHECK(time.reschedule_at(id, at(10s)));  // instead of 3 s
  time.advance(20s);
  REQUIRE(runs.size() == 5);
  CHECK(runs[1].due == at(10s));
  CHECK(runs[2].due == at(15s));
  CHECK(runs[3].due == at(16s));
  CHECK(runs[4].due == at(18s));
}

TEST_CASE("jitter is drawn separately for each timer, unless it has a seed") {
  manual_timer time;
  std::vector<firing> a, b, c, d;
  time.schedule(every(1s).jitter(0.5, 7), recording(a));
  time.schedule(every(1s).jitter(0.5, 7), recording(b));
  time.schedule(every(1s).jitter(0.5), recording(c));
  time.schedule(every(1s).jitter(0.5), recording(d));
  time.advance(20500ms);
  const auto dues = [](const std::vector<firing>& runs) {
    std::vector<rondo::time_point> t;
    for (std::size_t i = 0; i != 20; ++i) t.push_back(runs.at(i).due);
    return t;
  };
  CHECK(dues(a) == dues(b));
  CHECK(dues(c) != dues(d));
  CHECK(dues(a) != dues(c));
  CHECK(time.stats().missed == 0);
  for (std::size_t i = 0; i != 20; ++i) {
    CHECK(a[i].due >= at((static_cast<int>(i) + 1) * 1s));
    CHECK(a[i].due < at((static_cast<int>(i) + 1) * 1s + 500ms));
  }
}

TEST_CASE("a first run in the past runs now, and later runs are on the requested grid") {
  manual_timer time;
  time.elapse(10s);
  std::vector<firing> runs;
  time.schedule(every(3s).first_at(at(5s)), recording(runs));
  CHECK(time.advance(0s) == 1);
  time.advance(5s);
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].due == at(10s));
  CHECK(runs[0].lateness == 0s);
  CHECK(runs[0].missed == 0);
  CHECK(runs[1].due == at(11s));
  CHECK(runs[2].due == at(14s));
}

TEST_CASE("a recurrence that is never due is pending, and can be moved to a time when it is due") {
  manual_timer time;
  std::vector<firing> runs;
  const auto id = time.schedule(every(1s).first_after(duration::max()), recording(runs));
  time.advance(std::chrono::hours(24 * 365));
  CHECK(time.pending(id));
  CHECK(!time.next_due());
  CHECK(time.reschedule_after(id, 1s));
  time.advance(2s);
  CHECK(runs.size() == 2);
}

TEST_CASE("bad recurrences and empty tasks schedule nothing") {
  manual_timer time;
  CHECK_THROWS_AS(time.schedule(every(1s), rondo::task()), std::invalid_argument);
  CHECK_THROWS_AS(time.schedule(every(-1s), doing_nothing()), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
}

}  // namespace scheduler_missed
