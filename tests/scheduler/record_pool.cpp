// The pool of records on its own: every thread can use free records.
#include "scheduler/record_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "scheduler/pool_threads.hpp"

namespace scheduler_record_pool {

using rondo::detail::counters;
using rondo::detail::record;
using rondo::detail::record_pool;
using rondo::test::pool_threads;

#if !defined(RONDO_CHECKS)
static_assert(sizeof(record) == 192 || sizeof(void*) != 8);
#endif

struct pool_in_use {
  record_pool pool;
  std::vector<record*> taken;

  void take(std::size_t thread, std::size_t count) {
    pool_threads::on(thread, [&] {
      for (std::size_t i = 0; i != count; ++i) taken.push_back(&pool.take());
    });
  }
  void give_back_all(std::size_t thread) {
    pool_threads::on(thread, [&] {
      for (auto* const r : taken) {
        ++record_pool::own_shard(pool).here.counts.ended;
        pool.give_back(*r);
      }
    });
    taken.clear();
  }
};

TEST_CASE("records that one thread takes and another gives back are used again") {
  for (const std::size_t at_once : {1U, 63U, 64U, 65U, 1000U}) {
    CAPTURE(at_once);
    pool_in_use p;
    for (int i = 0; i != 100; ++i) {
      p.take(0, at_once);
      p.give_back_all(1);
    }
    CHECK(p.pool.slots() <=
          at_once + std::size_t{5} * 64);  // each shard may keep two magazines, and there is one new one
    CHECK(p.pool.free() == p.pool.slots());
  }
}

TEST_CASE("records that circulate among all threads are used again") {
  pool_in_use p;
  for (std::size_t i = 0; i != 1000; ++i) {
    p.take(i, 100);
    p.give_back_all(i * 7 + 1);
  }
  CHECK(p.pool.slots() <= std::size_t{100} + (2 * pool_threads::shards + 1) * 64);
  CHECK(p.pool.free() == p.pool.slots());
}

TEST_CASE("a slot that was never in use has no record") {
  pool_in_use p;
  CHECK(p.pool.find(0) == nullptr);
  p.take(0, 65);  // one batch, and a second one that leaves room in its segment
  CHECK(p.pool.find(p.taken[0]->slot) == p.taken[0]);
  const auto slots = static_cast<std::uint32_t>(p.pool.slots());
  CHECK(p.pool.find(slots - 1) != nullptr);
  CHECK(p.pool.find(slots) == nullptr);
}

TEST_CASE("a pool has as many records as were taken at once, plus those that shards keep") {
  pool_in_use p;
  p.take(0, 10'000);
  CHECK(p.pool.slots() < 10'000 + 64);
  p.give_back_all(0);
  p.take(0, 10'000);
  CHECK(p.pool.slots() < 10'000 + 64);
  p.give_back_all(0);
  p.take(3, 10'000);
  CHECK(p.pool.slots() < 10'000 + 3 * 64);
  CHECK(p.pool.total().pending() == 10'000);
}

TEST_CASE("a thread that takes and gives back a few records at a time always uses the same ones") {
  pool_in_use p;
  for (const std::size_t at_once : {1U, 63U, 64U, 65U, 127U, 128U}) {
    CAPTURE(at_once);
    p.take(0, at_once);
    p.give_back_all(0);
    const std::size_t slots = p.pool.slots();
    for (int i = 0; i != 10; ++i) {
      p.take(0, at_once);
      CHECK(p.pool.free() == slots - at_once);
      p.give_back_all(0);
      CHECK(p.pool.free() == slots);
    }
    CHECK(p.pool.slots() == slots);
  }
}

}  // namespace scheduler_record_pool
