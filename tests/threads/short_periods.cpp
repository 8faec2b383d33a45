// A period of one tick, on a real driver.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace threads_short_periods {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("with a period of one tick, a point is missed only if its tick has begun before the run") {
  rondo::timer timer;  // with a tick of 1 ms
  const rondo::timer_id probe = timer.schedule_after(1h, [] {});
  const time_point tick = timer.next_due().value() - 1h + 1s;  // ahead, even if this thread is delayed
  timer.cancel(probe);
  const time_point first = tick + 10us;  // so each point is 0.99 ms before its tick
  gate done;
  std::vector<firing> runs;
  timer.schedule(rondo::every(1ms).first_at(first), [&](const firing& f) {
    if (f.due >= first + 1s) return done.open();
    runs.push_back(f);
  });
  CHECK(done.wait());
  timer.stop();
  std::uint64_t points = 0;
  for (const firing& f : runs) {
    CHECK(f.due == first + points * 1ms);
    points += 1 + f.missed;
    CHECK(f.due + f.lateness >=
          tick + points * 1ms);  // the tick of its last missed point, or its own, has begun
  }
  MESSAGE(runs.size() << " runs of " << points << " points");  // fewer only if the driver gets no processor
}

}  // namespace threads_short_periods
