// Periods of about a tick: a point of the grid has passed when its tick has begun, and not before.
#include <string>
#include <utility>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_short_periods {

using namespace rondo;
using namespace rondo::test;

/// Wakes the driver at each tick of 1 ms until `end`, 50 us late as with real drivers.
void wake_at_each_tick(manual_timer& time, duration end) {
  for (duration tick = 1ms; tick <= end; tick += 1ms) {
    time.elapse(tick + 50us - since_epoch(time));
    time.advance(0s);
  }
}

/// The runs up to the tick at 6 ms, in microseconds: "1010@2050+1" is due@start+missed.
std::string runs_of(const recurrence& r) {
  manual_timer time;
  journal what;
  time.schedule(r.first_at(at(1010us)), [&](const firing& f) {
    what.add(std::to_string(f.due.time_since_epoch() / 1us) + '@' + std::to_string(since_epoch(time) / 1us) +
             (f.missed == 0 ? "" : '+' + std::to_string(f.missed)));
  });
  wake_at_each_tick(time, 6ms);
  return what.take();
}

TEST_CASE("with a period of one tick each point runs, wherever in a tick it is") {
  CHECK(runs_of(every(1ms)) == "1010@2050 2010@3050 3010@4050 4010@5050 5010@6050");
  for (const missed_runs what : {missed_runs::burst, missed_runs::delay})
    CHECK(runs_of(every(1ms).on_missed(what)) == runs_of(every(1ms)));
  for (const duration offset : {0us, 1us, 10us, 50us, 51us, 500us, 949us, 950us, 999us}) {
    CAPTURE(offset);
    manual_timer time;
    std::vector<firing> runs;
    time.schedule(every(1ms).first_at(at(1ms + offset)), recording(runs));
    wake_at_each_tick(time, 1001ms);
    CHECK(runs.size() == (offset == 0us ? 1001 : 1000));
    CHECK(time.stats().missed == 0);
    for (const firing& f : runs) CHECK(f.lateness < 1ms + 50us);
  }
}

TEST_CASE("with a period of more than a tick each point runs in its own tick") {
  CHECK(runs_of(every(1500us)) == "1010@2050 2510@3050 4010@5050 5510@6050");
  CHECK(runs_of(every(1001us)) == "1010@2050 2011@3050 3012@4050 4013@5050 5014@6050");
  CHECK(runs_of(cycle({1500us, 900us})) == "1010@2050 2510@3050 3410@4050 4910@5050 5810@6050");
}

TEST_CASE("of several points in one tick, the first one runs, or all of them, or the grid moves") {
  CHECK(runs_of(every(400us)) == "1010@2050+2 2210@3050+1 3010@4050+2 4210@5050+1 5010@6050+2");
  CHECK(runs_of(every(400us).on_missed(missed_runs::burst)) ==
        "1010@2050 1410@2050 1810@2050 2210@3050 2610@3050 3010@4050 3410@4050 3810@4050 4210@5050 4610@5050 "
        "5010@6050 5410@6050 5810@6050");
  CHECK(runs_of(every(400us).on_missed(missed_runs::burst, 2)) ==
        "1410@2050+1 1810@2050 2210@3050 2610@3050 3410@4050+1 3810@4050 4210@5050 4610@5050 5410@6050+1 "
        "5810@6050");
  CHECK(runs_of(every(400us).on_missed(missed_runs::delay)) ==
        "1010@2050+2 2450@3050+1 3450@4050+1 4450@5050+1 5450@6050+1");
}

TEST_CASE("jitter that moves a point into another tick misses nothing") {
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    CAPTURE(seed);
    manual_timer time;
    std::vector<firing> runs;
    time.schedule(every(1ms).first_at(at(1010us)).jitter(1, seed), recording(runs));
    wake_at_each_tick(time, 1002ms);
    CHECK(time.stats().missed == 0);
    CHECK(runs.size() >= 999);
  }
}

TEST_CASE("after_completion() counts from the end of the run, whatever the tick") {
  CHECK(runs_of(after_completion(1ms)) == "1010@2050 3050@4050 5050@6050");
}

TEST_CASE("a point whose tick has not begun does not overlap with the run before it") {
  manual_timer time;
  std::vector<job> jobs;
  int runs = 0;
  time.schedule(every(1ms).first_at(at(1010us)), counting(runs),
                rondo::on([&](job j) { jobs.push_back(std::move(j)); }));
  for (duration tick = 2ms; tick != 7ms; tick += 1ms) {
    time.elapse(tick + 50us - since_epoch(time));
    time.advance(0s);
    for (job& j : std::exchange(jobs, {})) j();
  }
  CHECK(runs == 5);
  CHECK(time.stats().missed == 0);
  CHECK(time.stats().overlapped == 0);
}

}  // namespace scheduler_short_periods
