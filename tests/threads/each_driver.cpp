// The same programs on each kind of scheduler: with a driver thread, in a loop, on virtual time.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/rondo.hpp>

#include "threads/patience.hpp"

namespace threads_each_driver {

using namespace rondo;
using namespace rondo::test;

// Each of these makes time pass until done().
template <class Done>
bool pass_time(timer&, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return done();
}
template <class Done>
bool pass_time(polled_timer& t, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done() && std::chrono::steady_clock::now() < end) t.poll(3);
  return done();
}
template <class Done>
bool pass_time(manual_timer& t, Done&& done) {
  for (int i = 0; i != 1000 && !done(); ++i) t.advance(100us);
  return done();
}

#define RONDO_EACH timer, polled_timer, manual_timer

TEST_CASE_TEMPLATE("one-shots fire in the order of their deadlines, none of them early", T, RONDO_EACH) {
  std::vector<int> order;
  std::atomic<int> early{0};
  std::atomic<std::size_t> ran{0};
  T t;
  const auto start = t.now() + 50ms;  // after all of them have been scheduled
  for (const int ms : {5, 1, 3, 2, 4})
    t.schedule_at(start + ms * 1ms, [&, start, ms](const firing& f) {
      if (t.now() < f.due || f.due != start + ms * 1ms) ++early;
      order.push_back(ms);
      ++ran;
    });
  CHECK(pass_time(t, [&] { return ran == 5; }));
  CHECK(order == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(early == 0);
}

TEST_CASE_TEMPLATE("each kind of recurrence runs as often as it should, and ends", T, RONDO_EACH) {
  std::atomic<int> runs{0};
  T t;
  const auto count = [&] { ++runs; };
  const rondo::timer_id ids[] = {
      t.schedule(every(300us).times(5), count),
      t.schedule(after_completion(300us).times(5), count),
      t.schedule(rondo::cycle({100us, 500us}).times(5).jitter(0.5), count),
      t.schedule(rondo::backoff(100us, 2, 1ms).times(5), count),
      t.schedule(every(300us).times(5).on_missed(rondo::missed_runs::burst), count),
      t.schedule(every(300us).times(5).on_missed(rondo::missed_runs::delay), count)};
  CHECK(pass_time(t, [&] { return t.pending() == 0 && runs == 30; }));
  for (const auto id : ids) CHECK(!t.pending(id));
  t.drain(patience);
  CHECK(t.stats().completed == 6);
  CHECK(t.stats().fired == 30);
  CHECK(t.stats().lateness.count() == 30);
  CHECK(t.stats().run_time.count() == 30);
  CHECK(adds_up(t.stats()));
}

TEST_CASE_TEMPLATE("a periodic task may cancel itself, and others may be moved", T, RONDO_EACH) {
  std::atomic<int> runs{0};
  std::atomic<bool> moved{false};
  T t;
  rondo::timer_id id;
  const auto far = t.schedule_after(1h, [&] { moved = true; });
  id = t.schedule(every(200us).first_after(1ms), [&, far](const firing& f) {
    if (++runs == 3) {
      CHECK(t.cancel(f.id) == cancel_result::running);
      CHECK(t.reschedule_after(far, 0s));
    }
  });
  CHECK(pass_time(t, [&] { return moved.load(); }));
  CHECK(runs == 3);
  CHECK(t.cancel(id) == cancel_result::gone);
  CHECK(t.stats().cancelled == 1);
}

TEST_CASE_TEMPLATE("stop() from inside a task hands back the remaining timers", T, RONDO_EACH) {
  std::vector<rondo::unfired> rest;
  std::atomic<bool> stopped{false};
  std::string ran;
  T t;
  t.schedule_after(1h, [&] { ran += "late"; });
  t.schedule_every(30min, [&] { ran += "often"; });
  t.schedule_after(1ms, [&] {
    rest = t.stop();
    stopped = true;
  });
  CHECK(pass_time(t, [&] { return stopped.load(); }));
  REQUIRE(rest.size() == 2);
  for (auto& r : rest) r.work();
  CHECK(ran == "oftenlate");
  CHECK_THROWS_AS(t.schedule_after(1s, [] {}), rondo::stopped_error);
}

TEST_CASE_TEMPLATE("drain() makes time pass by itself", T, RONDO_EACH) {
  std::atomic<int> runs{0};
  T t;
  t.schedule_after(3ms, [&] { ++runs; });
  t.schedule_after(1ms, [&] { ++runs; });
  t.schedule_every(10us, [&] { runs += 100; });
  CHECK(t.drain(patience));
  CHECK(runs % 100 == 2);
  CHECK(t.pending() == 0);
}

TEST_CASE_TEMPLATE("each of them can be used as a rondo::scheduler", T, RONDO_EACH) {
  T t({.tick = 100us, .buckets = 16, .max_pending = 2});
  scheduler& s = t;
  s.schedule_after(1h, [] {});
  s.schedule_after(2h, [] {});
  CHECK_THROWS_AS(s.schedule_after(3h, [] {}), rondo::capacity_error);
  CHECK(s.next_due().value() > s.now());
  CHECK(s.stop().size() == 2);
}

}  // namespace threads_each_driver
