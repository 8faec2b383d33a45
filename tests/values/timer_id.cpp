#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <rondo/timer_id.hpp>

using namespace rondo;
using rondo::detail::timer_id_access;

static_assert(sizeof(timer_id) <= 16);
static_assert(std::is_trivially_copyable_v<timer_id> && std::is_standard_layout_v<timer_id>);
static_assert(std::is_nothrow_default_constructible_v<timer_id>);
static_assert(noexcept(std::hash<timer_id>()(timer_id())));
static_assert(timer_id() == timer_id(), "a constant expression");

TEST_CASE("ids are equal if scheduler, slot and generation are") {
  const timer_id id = timer_id_access::make(1, 2, 3);
  CHECK((id == timer_id_access::make(1, 2, 3)));
  CHECK((id != timer_id_access::make(9, 2, 3)));
  CHECK((id != timer_id_access::make(1, 9, 3)));
  CHECK((id != timer_id_access::make(1, 2, 9)));
  CHECK((id != timer_id_access::make(1, 2, 3 + (std::uint64_t{1} << 32))));
  CHECK((id != timer_id()));
}

TEST_CASE("an id gives back what it was made of") {
  const timer_id id = timer_id_access::make(0xffffffffU, 0xfffffffeU, 0xfffffffffffffffdU);
  CHECK(timer_id_access::scheduler(id) == 0xffffffffU);
  CHECK(timer_id_access::slot(id) == 0xfffffffeU);
  CHECK(timer_id_access::generation(id) == 0xfffffffffffffffdU);
}

TEST_CASE("a default-constructed id names no scheduler") {
  CHECK(timer_id_access::scheduler(timer_id()) == 0);
}

TEST_CASE("copies of an id are equal and hash equally") {
  const timer_id id = timer_id_access::make(5, 6, 7);
  timer_id copy = id;
  CHECK((copy == id));
  CHECK(std::hash<timer_id>()(copy) == std::hash<timer_id>()(id));
  copy = timer_id();
  CHECK(std::hash<timer_id>()(copy) == std::hash<timer_id>()(timer_id()));
}

TEST_CASE("ids that differ hardly ever hash alike") {
  std::set<std::size_t> hashes;
  constexpr std::uint32_t count = 4096;
  for (std::uint32_t i = 0; i != count; ++i) {
    for (const timer_id id : {timer_id_access::make(1, i, 1), timer_id_access::make(1, 1, i + 2),
                              timer_id_access::make(i + 2, 1, 1)})
      hashes.insert(std::hash<timer_id>()(id));
  }
  CHECK(hashes.size() > 3 * count - 10);
}

TEST_CASE("the ids of one scheduler spread over a table that uses the low bits of the hash") {
  std::set<std::size_t> places;
  constexpr std::uint32_t count = 4096;
  for (std::uint32_t i = 0; i != count; ++i) {
    places.insert(std::hash<timer_id>()(timer_id_access::make(1, i, 1)) % (8 * count));
    places.insert(std::hash<timer_id>()(timer_id_access::make(1, 1, i + 2)) % (8 * count));
  }
  CHECK(places.size() > count);  // at random it would be 7200
}

TEST_CASE("ids can be keys") {
  std::unordered_set<timer_id> ids;
  for (std::uint32_t slot = 0; slot != 100; ++slot) ids.insert(timer_id_access::make(1, slot, slot));
  CHECK(ids.size() == 100);
  CHECK(ids.count(timer_id_access::make(1, 50, 50)) == 1);
  CHECK(ids.count(timer_id_access::make(1, 50, 51)) == 0);
  CHECK(ids.count(timer_id()) == 0);
}
