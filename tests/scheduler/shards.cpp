// Shards on their own: the records that threads take and give back.
#include "scheduler/shards.hpp"

#include <cstddef>
#include <cstdint>
#include <set>

#include <doctest/doctest.h>

#include "scheduler/shards_in_use.hpp"
#include "scheduler/shown.hpp"

namespace scheduler_shards {

using rondo::detail::record;
using rondo::test::shards_in_use;

#if !defined(RONDO_CHECKS)
static_assert(sizeof(record) == 128 || sizeof(void*) != 8);
#endif

TEST_CASE("records that one thread takes and another gives back are used again") {
  for (const std::size_t at_once : {1U, 63U, 64U, 65U, 1000U}) {
    CAPTURE(at_once);
    shards_in_use s;
    for (int i = 0; i != 100; ++i) {
      s.take(0, at_once);
      s.give_back_all(1);
    }
    CHECK(s.all.slots() < at_once + 2 * 64);
    CHECK(census_of(s.all).free == s.all.slots());
  }
}

TEST_CASE("a record goes back to its shard, whoever gives it back") {
  shards_in_use s;
  for (std::size_t thread = 0; thread != 5; ++thread) {
    CAPTURE(thread);
    s.take(thread, 100);
    const auto& own = s.all.of(*s.taken[0]);
    for (const record* const r : s.taken) CHECK(&s.all.of(*r) == &own);
    const std::set<record*> before(s.taken.begin(), s.taken.end());
    const std::size_t slots = s.all.slots();
    s.give_back_all(thread + 1);
    s.take(thread, slots);
    for (record* const r : before) CHECK(std::set<record*>(s.taken.begin(), s.taken.end()).count(r) == 1);
    s.give_back_all(thread);
  }
}

TEST_CASE("a slot that was never in use has no record") {
  shards_in_use s;
  CHECK(s.find(0) == nullptr);
  s.take(0, 65);  // two blocks
  const std::uint32_t slot = s.taken[0]->slot;
  CHECK(s.find(slot) == s.taken[0]);
  using rondo::detail::record_slot;
  const std::uint32_t number = record_slot::shard(slot);
  CHECK(s.find(record_slot::of(number, 1, 63)) != nullptr);
  CHECK(s.find(record_slot::of(number, 2, 0)) == nullptr);
  CHECK(s.find(slot + 1) == nullptr);  // of a shard that no thread has
}

TEST_CASE("a thread that takes and gives back a few records at a time always uses the same ones") {
  shards_in_use s;
  for (const std::size_t at_once : {1U, 63U, 64U, 65U, 127U, 128U}) {
    CAPTURE(at_once);
    s.take(0, at_once);
    s.give_back_all(0);
    const std::size_t slots = s.all.slots();
    for (int i = 0; i != 10; ++i) {
      s.take(0, at_once);
      CHECK(census_of(s.all).free == slots - at_once);
      s.give_back_all(0);
      CHECK(census_of(s.all).free == slots);
    }
    CHECK(s.all.slots() == slots);
  }
}

TEST_CASE("a thread that schedules nothing has no shard") {
  shards_in_use s;
  const auto count = [&] {
    std::size_t found = 0;
    s.all.for_each([&](const auto&) { ++found; });
    return found;
  };
  CHECK(count() == 0);
  s.take(0, 1);
  s.give_back_all(1);
  CHECK(count() == 1);
  s.take(1, 1);
  s.give_back_all(0);
  CHECK(count() == 2);
}

}  // namespace scheduler_shards
