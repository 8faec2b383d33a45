#include <doctest/doctest.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <rondo/timer_id.hpp>

namespace values_timer_id {

using namespace rondo;
using rondo::detail::timer_id_access;

static_assert(sizeof(timer_id) <= 16);
static_assert(std::is_trivially_copyable_v<timer_id> && std::is_standard_layout_v<timer_id>);
static_assert(std::is_nothrow_default_constructible_v<timer_id>);
static_assert(noexcept(std::hash<timer_id>()(timer_id())));
static_assert(timer_id() == timer_id(), "comparison is a constant expression");
static_assert(timer_id() <=> timer_id_access::make(1, 0, 0) == std::strong_ordering::less, "another one");
static_assert(noexcept(timer_id() < timer_id()));

TEST_CASE("ids are equal if scheduler, slot and generation are equal") {
  const timer_id id = timer_id_access::make(1, 2, 3);
  CHECK((id == timer_id_access::make(1, 2, 3)));
  CHECK((id != timer_id_access::make(9, 2, 3)));
  CHECK((id != timer_id_access::make(1, 9, 3)));
  CHECK((id != timer_id_access::make(1, 2, 9)));
  CHECK((id != timer_id_access::make(1, 2, 3 + (std::uint64_t{1} << 32))));
  CHECK((id != timer_id()));
}

TEST_CASE("an id returns the parts it was made from") {
  const timer_id id = timer_id_access::make(0xffffffffU, 0xfffffffeU, 0xfffffffffffffffdU);
  CHECK(timer_id_access::parts(id).scheduler == 0xffffffffU);
  CHECK(timer_id_access::parts(id).slot == 0xfffffffeU);
  CHECK(timer_id_access::parts(id).generation == 0xfffffffffffffffdU);
}

TEST_CASE("a default-constructed id names no scheduler") {
  CHECK(timer_id_access::parts(timer_id()).scheduler == 0);
}

TEST_CASE("copies of an id are equal and hash equally") {
  const timer_id id = timer_id_access::make(5, 6, 7);
  timer_id copy = id;
  CHECK((copy == id));
  CHECK(std::hash<timer_id>()(copy) == std::hash<timer_id>()(id));
  copy = timer_id();
  CHECK(std::hash<timer_id>()(copy) == std::hash<timer_id>()(timer_id()));
}

TEST_CASE("different ids rarely have the same hash") {
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
  CHECK(places.size() > count);  // random hashes would give 7200
}

TEST_CASE("ids can be keys of unordered containers") {
  std::unordered_set<timer_id> ids;
  for (std::uint32_t slot = 0; slot != 100; ++slot) ids.insert(timer_id_access::make(1, slot, slot));
  CHECK(ids.size() == 100);
  CHECK(ids.count(timer_id_access::make(1, 50, 50)) == 1);
  CHECK(ids.count(timer_id_access::make(1, 50, 51)) == 0);
  CHECK(ids.count(timer_id()) == 0);
}

/// Ids that differ from others in one part only, including the ends of the ranges.
std::vector<timer_id> various_ids() {
  std::vector<timer_id> ids{timer_id()};
  for (const std::uint32_t scheduler : {1U, 2U, 12U, 0xffffffffU})
    for (const std::uint32_t slot : {0U, 1U, 2U, 21U, 0xffffffffU})
      for (const std::uint64_t generation :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32, ~std::uint64_t{0}})
        ids.push_back(timer_id_access::make(scheduler, slot, generation));
  return ids;
}

TEST_CASE("ids have a total order that agrees with ==, and the id of no timer is first") {
  const std::vector<timer_id> ids = various_ids();
  for (std::size_t i = 0; i != ids.size(); ++i) {
    for (std::size_t j = 0; j != ids.size(); ++j) {
      CHECK((ids[i] == ids[j]) == (i == j));
      CHECK((ids[i] < ids[j]) == (i < j));
      CHECK((ids[i] <=> ids[j]) == (i <=> j));
    }
  }
}

TEST_CASE("ids can be keys of ordered containers") {
  const std::vector<timer_id> ids = various_ids();
  const std::set<timer_id> ordered(ids.rbegin(), ids.rend());
  CHECK(ordered.size() == ids.size());
  CHECK(std::equal(ids.begin(), ids.end(), ordered.begin(), ordered.end()));
}

TEST_CASE("to_string() of an id shows its parts") {
  CHECK(to_string(timer_id()) == "no timer");
  CHECK(to_string(timer_id_access::make(1, 7, 42)) == "1.7.42");
  CHECK(to_string(timer_id_access::make(1, 0, 0)) == "1.0.0");
  CHECK(to_string(timer_id_access::make(0xffffffffU, 0xffffffffU, ~std::uint64_t{0})) ==
        "4294967295.4294967295.18446744073709551615");
}

TEST_CASE("different ids have different texts") {
  std::set<std::string> texts;
  for (const timer_id id : various_ids()) {
    const std::string text = to_string(id);
    CHECK(text == rondo::to_string(timer_id(id)));
    CHECK(text.size() <= 42);
    CHECK(texts.insert(text).second);
  }
}

}  // namespace values_timer_id
