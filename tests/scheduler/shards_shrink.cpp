// Shards on their own give the memory of free records back, and no record is ever mistaken for an earlier one.
#include <algorithm>
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
#include "scheduler/shown.hpp"

namespace scheduler_shards_shrink {

using namespace rondo::test;
using rondo::detail::record;

struct shrinking_shards : shards_in_use {
  void shrink(std::size_t thread) {
    pool_threads::on(thread, [&] { all.shrink_to_fit(pass); });
  }
};

TEST_CASE("all free records lose their memory, and others are made when they are needed") {
  for (const std::size_t count : {1U, 64U, 65U, 10'000U}) {
    CAPTURE(count);
    shrinking_shards p;
    p.take(0, count);
    const std::size_t slots = p.all.slots();
    for (int round = 0; round != 3; ++round) {
      p.give_back_all(0);
      p.shrink(0);
      CHECK(p.all.slots() == 0);
      CHECK(census_of(p.all).free == 0);
      p.take(0, count);
      CHECK(p.all.slots() == slots);
      CHECK(census_of(p.all).free == slots - count);
      std::set<std::uint32_t> distinct;
      for (const record* const r : p.taken) {
        distinct.insert(r->slot);
        CHECK(p.find(r->slot) == r);
        CHECK(r->plain());
        CHECK_FALSE(r->live());
        CHECK_FALSE(r->work);
        CHECK(r->wheel == nullptr);
      }
      CHECK(distinct.size() == count);
    }
  }
}

TEST_CASE("free records keep their extra parts until then, even if they keep their memory" *
          doctest::skip(!failing_new::available)) {
  for (const std::size_t in_use : {0U, 1U}) {
    CAPTURE(in_use);
    shrinking_shards p;
    p.take(0, 64);  // a block
    record* const last = p.taken.back();
    if (in_use != 0) p.taken.pop_back();
    const auto without = bytes_held();
    for (record* const r : p.taken) r->with_extra();
    const auto with = bytes_held();
    CHECK(with > without);
    p.give_back_all(0);
    CHECK(bytes_held() >= with);
    p.shrink(0);
    CHECK(bytes_held() < with - 60 * static_cast<std::ptrdiff_t>(sizeof(rondo::detail::extra_part)));
    if (in_use != 0) p.end(*last);
  }
}

TEST_CASE("a record in use keeps the memory of its block, and does not change") {
  shrinking_shards p;
  p.take(0, 1000);
  record* const stays = p.taken[500];
  p.taken.erase(p.taken.begin() + 500);
  stays->ticket() = 17;
  const std::uint64_t generation = stays->generation;
  p.give_back_all(0);
  p.shrink(0);
  CHECK(p.all.slots() == 64);
  CHECK(census_of(p.all).free == 63);
  CHECK(p.find(stays->slot) == stays);
  CHECK(stays->ticket() == 17);
  CHECK(stays->generation == generation);
  pool_threads::on(0, [&] { p.end(*stays); });
  p.shrink(0);
  CHECK(p.all.slots() == 0);
}

TEST_CASE("the slots of a block that was given back name nothing, until one is made there again") {
  shrinking_shards p;
  p.take(0, 640);
  const auto by_slot = [](const record* a, const record* b) { return a->slot < b->slot; };
  std::sort(p.taken.begin(), p.taken.end(), by_slot);
  record* const last = p.taken.back();
  const std::uint32_t first_slot = p.taken.front()->slot;
  p.taken.pop_back();
  p.give_back_all(0);
  p.shrink(0);
  CHECK(p.find(first_slot) == nullptr);
  CHECK(p.find(last->slot) == last);
  p.take(0, 64);  // 63 of them in the last block
  CHECK(p.find(first_slot) != nullptr);
  for (const record* const r : p.taken) CHECK(r->slot < last->slot + 64 * 64);
  pool_threads::on(0, [&] { p.end(*last); });
}

TEST_CASE("records that the pass in progress has listed keep their memory") {
  shrinking_shards p;
  p.take(0, 100);
  record& listed = *p.taken[0];
  auto& s = p.all.of(listed);
  rondo::detail::shards::note_listed(s, 1);
  p.give_back_all(0);
  const std::size_t slots = p.all.slots();
  p.shrink(0);
  CHECK(p.all.slots() == slots);
  CHECK(census_of(p.all).free == slots);
  p.all.note_unlisted(listed);
  p.shrink(0);
  CHECK(p.all.slots() == 0);
}

TEST_CASE(
    "records of shared shards lose their memory, and those of another thread's shard keep their blocks") {
  shrinking_shards p;
  for (const std::size_t thread : {3U, 4U, 7U}) {
    p.take(0, 1000);
    p.give_back_all(thread);
    p.shrink(0);
    CHECK(p.all.slots() <= 3 * 64);
    p.shrink(thread);
    CHECK(p.all.slots() <= 3 * 64);
  }
  p.take(1, 6400);
  p.give_back_all(1);
  p.shrink(0);
  CHECK(p.all.slots() >= 64);
  CHECK(p.all.slots() <= 3 * 64);
  CHECK(census_of(p.all).free == p.all.slots());
  p.shrink(1);
  CHECK(p.all.slots() == 0);
}

TEST_CASE("generations never repeat") {
  shrinking_shards p;
  p.take(0, 128);
  p.taken[0]->generation += 1000;
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 128);
  for (const record* const r : p.taken) CHECK(r->generation >= 1002);
  // Records with lower numbers lose their memory later. The higher numbers must not be forgotten then.
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 500);
  p.give_back_all(0);
  p.shrink(0);
  p.take(0, 500);
  for (const record* const r : p.taken) CHECK(r->generation >= 1004);
}

TEST_CASE("without memory for its own work shrink_to_fit() gives nothing back, and loses nothing" *
          doctest::skip(!failing_new::available)) {
  shrinking_shards p;
  p.take(0, 1000);
  p.give_back_all(0);
  const std::size_t slots = p.all.slots();
  bool struck = false;
  pool_threads::on(0, [&] {
    const failing_new memory;
    p.all.shrink_to_fit(p.pass);
    struck = memory.struck();
  });
  CHECK(struck);
  CHECK(p.all.slots() == slots);
  CHECK(census_of(p.all).free == slots);
  p.take(0, 1000);
  CHECK(p.all.slots() == slots);
  p.give_back_all(0);
  p.shrink(0);
  CHECK(p.all.slots() == 0);
}

TEST_CASE(
    "whatever records are taken, ended and given back, no two timers have the same slot and generation") {
  for (const std::uint64_t seed : seeds("shards_shrink", 20)) {
    CAPTURE(seed);
    dice random(seed);
    shrinking_shards p;
    std::map<std::uint32_t, std::uint64_t> last;  // generations by slot
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
            if (had != last.end()) CHECK(r.generation > had->second);
            last[r.slot] = r.generation;
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
      CHECK(census_of(p.all).free + p.taken.size() == p.all.slots());
    }
  }
}

}  // namespace scheduler_shards_shrink
