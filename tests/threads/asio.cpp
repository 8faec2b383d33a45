// A Boost.Asio thread pool as the executor, in one line.
#include <atomic>
#include <memory>
#include <thread>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace threads_asio {

using namespace rondo;
using namespace rondo::test;

/// Asio needs movable handlers, and a job is movable.
rondo::executor posting_to(boost::asio::thread_pool& pool) {
  return [&pool](job j) { boost::asio::post(pool, std::move(j)); };
}

TEST_CASE("tasks run on an Asio thread pool") {
  boost::asio::thread_pool pool(2);
  std::atomic<int> runs{0};
  {
    timer t({.run_on = posting_to(pool)});
    for (int i = 0; i != 1000; ++i) t.schedule_after(i % 10 * 1ms, [&] { ++runs; });
    CHECK(t.drain(patience));
    CHECK(runs == 1000);
    CHECK(t.stats().completed == 1000);
  }
  pool.join();
}

TEST_CASE("an Asio pool that is destroyed before the timer drops its jobs, and they are counted") {
  auto pool = std::make_unique<boost::asio::thread_pool>(1);
  rondo::test::gate blocked, go_on, handed;
  rondo::test::gate passed;  // opened once the driver has finished the last hand-over
  timer t({.run_on = [&](job j) { boost::asio::post(*pool, std::move(j)); }});
  t.schedule_after(0s, [&] {
    blocked.open();
    go_on.wait();
  });
  REQUIRE(blocked.wait());
  for (int i = 0; i != 10; ++i)
    t.schedule_after(
        0s, [] {}, rondo::on([&](job j) {
          boost::asio::post(*pool, std::move(j));
          handed.open();
        }));
  REQUIRE(handed.wait(10));
  pool->stop();
  go_on.open();
  pool->join();
  pool.reset();
  t.schedule_after(
      0s, [&] { passed.open(); }, rondo::on([](job j) { j(); }));
  REQUIRE(passed.wait());
  REQUIRE(t.drain(patience));
  CHECK(t.stats().rejected == 10);
  CHECK(t.stats().completed == 12);
  CHECK(adds_up(t.stats()));
}

TEST_CASE("runs of one timer may overlap on an Asio thread pool") {
  boost::asio::thread_pool pool(4);
  rondo::test::gate begun, runs;
  {
    timer t({.run_on = posting_to(pool)});
    t.schedule(rondo::every(1ms).times(20).on_overlap(rondo::overlapping_runs::allow), [&] {
      begun.open();
      if (begun.wait(2)) runs.open();  // the first run cannot end before the second has begun
    });
    CHECK(runs.wait(20));
    CHECK(t.drain(patience));
    CHECK(t.stats().overlapped == 0);
    CHECK(t.stats().fired == 20);
  }
  pool.join();
}

}  // namespace threads_asio
