// Shards on their own give the memory of free records back, and no record is ever mistaken for an earlier one.
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "failing_new.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/shards_in_use.hpp"
#include "sync/pages.hpp"

namespace scheduler_shrink_pool {

using namespace rondo::test;
using rondo::detail::record;

struct pool_in_use : shards_in_use {
  void shrink(std::size_t thread) {
    pool_threads::on(thread, [&] { all.shrink_to_fit(); });
  }
  std::size_t zeros() const {
    std::size_t count = 0;
    for (std::uint32_t slot = 0; slot != all.slots(); ++slot)
      count += all.at_slot(slot)->generation == 0 ? 1U : 0U;
    return count;
  }
};

// On other systems nothing is given back, and larger pages hold the records of several blocks.
TEST_SUITE_BEGIN("shrink_pool" * doctest::skip(!rondo::detail::drops_pages() ||
                                               64 * sizeof(record) % rondo::detail::page_size() != 0));

TEST_CASE("all free records lose their memory, and are used again before new ones are created") {
  for (const std::size_t count : {1U, 64U, 65U, 10'000U}) {
    CAPTURE(count);
    pool_in_use p;
    p.take(0, count);
    const std::size_t slots = p.all.slots();
    for (int round = 0; round != 3; ++round) {
      p.give_back_all(0);
      p.shrink(0);
      CHECK(p.zeros() == slots);
      CHECK(p.all.free() == slots);
      p.take(0, count);
      CHECK(p.all.slots() == slots);
      CHECK(p.all.free() == slots - count);
      std::set<std::uint32_t> distinct;
      for (const record* const r : p.taken) {
        distinct.insert(r->slot);
        CHECK(p.all.at_slot(r->slot) == r);
        CHECK(r->plain);
        CHECK_FALSE(r->live());
        CHECK_FALSE(r->work);
        CHECK(r->wheel == nullptr);
      }
      CHECK(distinct.size() == count);
    }
  }
}

TEST_CASE("a record in use keeps the memory of its block, and does not change") {
  pool_in_use p;
  p.take(0, 1000);
  record* const stays = p.taken[500];
  p.taken.erase(p.taken.begin() + 500);
  stays->number = 17;
  const std::uint64_t generation = stays->generation;
  p.give_back_all(0);
  const std::size_t slots = p.all.slots();
  p.shrink(0);
  CHECK(p.zeros() == slots - 64);
  CHECK(stays->number == 17);
  CHECK(stays->generation == generation);
  CHECK(p.all.free() == slots - 1);
  pool_threads::on(0, [&] { p.end(*stays); });
  p.shrink(0);
  CHECK(p.zeros() == slots);
}

TEST_CASE(
    "records of shared shards lose their memory, and those of another thread's shard keep their blocks") {
  pool_in_use p;
  for (const std::size_t thread : {3U, 4U, 7U}) {
    p.take(0, 1000);
    p.give_back_all(thread);
    p.shrink(0);
    CHECK(p.zeros() == p.all.slots());
  }
  p.take(1, 6400);
  p.give_back_all(1);
  p.shrink(0);
  CHECK(p.zeros() >= p.all.slots() - 3 * 64);
  CHECK(p.zeros() <= p.all.slots() - 64);
  CHECK(p.all.free() == p.all.slots());
  p.shrink(1);
  CHECK(p.zeros() == p.all.slots());
}

TEST_CASE("generations and armings never repeat") {
  pool_in_use p;
  p.take(0, 128);
  record& busy = *p.taken[0];
  busy.generation += 1000;
  for (int i = 0; i != 5000; ++i) busy.invalidate_wait();
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 128);
  for (const record* const r : p.taken) {
    CHECK(r->generation >= 1002);
    CHECK(r->arming.load() >= 5002);
  }
  // Records with lower numbers lose their memory later. The higher numbers must not be forgotten then.
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 500);
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 500);
  for (const record* const r : p.taken) {
    CHECK(r->generation >= 1004);
    CHECK(r->arming.load() >= 5004);
  }
}

TEST_CASE("without memory for its own work the pool gives nothing back, and loses nothing" *
          doctest::skip(!failing_new::available || !rondo::detail::drops_pages())) {
  pool_in_use p;
  p.take(0, 1000);
  p.give_back_all(0);
  const std::size_t slots = p.all.slots();
  for (const std::size_t after : {0U, 1U}) {
    bool struck = false;
    pool_threads::on(0, [&] {
      const failing_new memory(after);
      p.all.shrink_to_fit();
      struck = memory.struck();
    });
    CHECK(struck);
  }
  CHECK(p.zeros() == 0);
  CHECK(p.all.free() == slots);
  p.take(0, 1000);
  CHECK(p.all.slots() == slots);
  p.give_back_all(0);
  p.shrink(0);
  CHECK(p.zeros() == slots);
}

TEST_CASE(
    "whatever records are taken, ended and given back, no two timers have the same slot and generation") {
  for (const std::uint64_t seed : seeds("shrink_pool", 20)) {
    CAPTURE(seed);
    dice random(seed);
    pool_in_use p;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> last;  // by slot: generation, arming
    for (int step = 0; step != 200; ++step) {
      const std::size_t thread = random.roll(5);
      const std::size_t count = random.roll(random.one_in(4) ? 700 : 70);
      switch (random.roll(4)) {
        case 0:
          p.shrink(thread);
          break;
        case 1:
          p.take(thread, count);
          for (std::size_t i = p.taken.size() - count; i != p.taken.size(); ++i) {
            const record& r = *p.taken[i];
            const auto had = last.find(r.slot);
            if (had != last.end()) {
              CHECK(r.generation > had->second.first);
              CHECK(r.arming.load() > had->second.second);
            }
            last[r.slot] = {r.generation, r.arming.load()};
          }
          break;
        default:
          pool_threads::on(thread, [&] {
            for (std::size_t i = 0; i != count && !p.taken.empty(); ++i, p.taken.pop_back()) {
              std::swap(p.taken[random.roll(p.taken.size())], p.taken.back());
              p.end(*p.taken.back());
            }
          });
      }
      CHECK(p.all.free() + p.taken.size() == p.all.slots());
    }
  }
}

TEST_SUITE_END();

}  // namespace scheduler_shrink_pool
