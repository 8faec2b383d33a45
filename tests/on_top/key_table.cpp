// The hash table of keyed_timers, compared with std::map.
#include <rondo/detail/key_table.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "failing_new.hpp"
#include "scheduler/seeds.hpp"

namespace on_top_key_table {

using namespace rondo::test;

/// A hash with only `Values` values. If that is 0: the key shifted left, so that the low 40 bits are all equal.
template <std::uint64_t Values>
struct poor_hash {
  std::size_t operator()(std::uint64_t key) const noexcept {
    return Values == 0 ? key << 40U : key % (Values == 0 ? 1 : Values);
  }
};

template <class Hash>
using table = rondo::detail::key_table<std::uint64_t, Hash, std::equal_to<>>;

TEST_CASE("the elements of a block table have numbers from 1, and do not move") {
  rondo::detail::block_table<std::uint32_t> t;
  std::vector<std::uint32_t*> known{nullptr};
  for (std::uint32_t n = 1; n != 10'000; ++n) {
    REQUIRE(t.end() == n);
    for (std::size_t after = 0; failing_new::available; ++after) {
      const failing_new fails(after, failing_new::all);
      try {
        REQUIRE(t.add() == n);
        break;
      } catch (const std::bad_alloc&) {
        REQUIRE(t.end() == n);
      }
    }
    if (!failing_new::available) t.add();
    t.at(n) = n;
    known.push_back(&t.at(n));
  }
  for (std::uint32_t n = 1; n != t.end(); ++n) REQUIRE((&t.at(n) == known[n] && *known[n] == n));
}

template <class Key, class Hash>
void drop(rondo::detail::key_table<Key, Hash, std::equal_to<>>& t, std::uint32_t n) {
  t.forget(n);
  std::destroy_at(&t.at(n).key);
  t.reuse(n);
}

TEST_CASE_TEMPLATE("a key is found from when it is added until it is forgotten, and keeps its place", Hash,
                   std::hash<std::uint64_t>, poor_hash<0>, poor_hash<1>, poor_hash<3>) {
  for (const std::uint64_t seed : seeds("key_table", 5)) {
    CAPTURE(seed);
    dice d(seed);
    table<Hash> t;
    std::map<std::uint64_t, std::uint32_t> model;
    CHECK(t.find(0) == 0);
    for (std::uint32_t i = 1; i != 1000; ++i) {
      const std::uint64_t key = d.roll(150);
      const auto known = model.find(key);
      REQUIRE(t.find(key) == (known == model.end() ? 0 : known->second));
      if (d.one_in(3)) {
        if (known == model.end()) continue;
        t.at(known->second).entry = {};
        drop(t, known->second);
        model.erase(known);
      } else {
        const std::uint32_t n = t.find_or_add(std::uint64_t{key});
        REQUIRE(t.at(n).key == key);
        REQUIRE((0 < n && n < t.end()));
        if (known != model.end()) {
          REQUIRE(n == known->second);
        } else {
          REQUIRE(t.at(n).entry.unused());
          t.at(n).entry.replaced = i;
          model.emplace(key, n);
        }
      }
      REQUIRE(t.empty() == model.empty());
    }
    std::size_t used = 0;
    for (std::uint32_t n = 1; n < t.end(); ++n)
      if (!t.at(n).entry.unused()) ++used;
    CHECK(used == model.size());
  }
}

TEST_CASE("the places of keys that were forgotten are used again") {
  table<std::hash<std::uint64_t>> t;
  for (std::uint64_t key = 0; key != 1000; ++key) t.find_or_add(std::uint64_t{key});
  const std::uint32_t end = t.end();
  for (std::uint64_t key = 0; key != 10'000; ++key) {
    drop(t, t.find(key));
    t.find_or_add(key + 1000);
  }
  CHECK(t.end() == end);
}

/// Counts live objects. The next move throws if `fails` is set.
struct counted_key {
  explicit counted_key(int v) : value(v) { ++alive; }
  counted_key(counted_key&& k) : value(k.value) {
    if (std::exchange(fails, false)) throw std::runtime_error("moved");
    ++alive;
  }
  counted_key(const counted_key&) = delete;
  counted_key& operator=(const counted_key&) = delete;
  ~counted_key() { --alive; }
  bool operator==(const counted_key& k) const { return value == k.value; }

  struct hash {
    std::size_t operator()(const counted_key& k) const noexcept { return static_cast<std::size_t>(k.value); }
  };
  int value;
  inline static int alive = 0;
  inline static bool fails = false;
};
using counted_table = rondo::detail::key_table<counted_key, counted_key::hash, std::equal_to<>>;

TEST_CASE("keys live as long as the table, or until they are destroyed after they were forgotten") {
  {
    counted_table t;
    for (int i = 0; i != 100; ++i) t.find_or_add(counted_key(i % 40));
    CHECK(counted_key::alive == 40);
    const std::uint32_t gone = t.find(counted_key(7));
    t.forget(gone);
    CHECK(t.find(counted_key(7)) == 0);
    CHECK(counted_key::alive == 40);
    std::destroy_at(&t.at(gone).key);
    t.reuse(gone);
    CHECK(counted_key::alive == 39);
  }
  CHECK(counted_key::alive == 0);
}

TEST_CASE("a key is not added if moving it throws or there is no memory") {
  counted_table t;
  for (int i = 0; i != 200; ++i) {  // the table grows several times
    counted_key::fails = true;
    CHECK_THROWS_AS(t.find_or_add(counted_key(i)), std::runtime_error);
    CHECK(t.find(counted_key(i)) == 0);
    for (std::size_t after = 0; failing_new::available; ++after) {
      const failing_new fails(after, failing_new::all);
      try {
        t.find_or_add(counted_key(i));
        break;
      } catch (const std::bad_alloc&) {
        REQUIRE(t.find(counted_key(i)) == 0);
      }
    }
    if (!failing_new::available) t.find_or_add(counted_key(i));
    REQUIRE(t.find(counted_key(i)) != 0);
  }
  for (int i = 0; i != 200; ++i) CHECK(t.find(counted_key(i)) != 0);
}

}  // namespace on_top_key_table
