// far_lists: its state after some of its nodes were redistributed or extracted.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <rondo/detail/chunks.hpp>
#include <rondo/detail/far_lists.hpp>

#include "nodes_of.hpp"

namespace model_wheel_far_lists_parts {

using model::earliest_of;
using model::nodes_of;
using namespace rondo;
using namespace rondo::detail;

/// A store and its nodes, which are numbered in the order in which they were added.
struct store_in_use {
  node& add(tick_number due) {
    node& n = nodes.emplace_back();
    n.due = due;
    store.make_room(due);
    store.add(n, n.due);
    return n;
  }
  void take(node& n) {
    taken.make_room(pool);
    taken.push_at_once(n);
  }
  /// The numbers of the nodes taken, in the order of taking.
  std::vector<std::size_t> numbers_taken() const {
    std::map<const node*, std::size_t> numbers;
    for (const node& n : nodes) numbers.emplace(&n, numbers.size());
    std::vector<std::size_t> found;
    for (const node* n : nodes_of(taken, pool)) found.push_back(numbers.at(n));
    return found;
  }

  chunk_pool pool;
  far_lists store{pool};
  std::deque<node> nodes;
  chain taken;
};

TEST_CASE("during redistribution, a node that is added in the range follows the others of its tick") {
  store_in_use s;
  s.store.move_base(0);
  for (int i = 0; i != 300; ++i) s.add(600 + i % 3);
  s.store.move_base(600);
  const auto take = [&](node& n) {
    if (n.due == 600) s.take(n);
    return n.due == 600;
  };
  s.store.redistribute(100, take);
  REQUIRE(s.store.rest.first != 0);
  for (int i = 0; i != 30; ++i) s.add(600 + i % 3);
  for (int parts = 0; s.store.rest.first != 0; ++parts) {
    REQUIRE(parts != 1000);
    s.store.redistribute(7, take);
  }
  const auto numbers = s.numbers_taken();
  CHECK(numbers.size() == 110);
  CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_CASE("extract() takes nodes of a tick in order, and no more than its limit") {
  store_in_use s;
  s.store.move_base(0);
  for (int i = 0; i != 300; ++i) s.add(i % 3 == 0 ? 4100 : 4096);
  s.store.move_base(4100);
  for (const std::size_t taken : {70U, 140U, 200U}) {
    s.store.extract(4096, 70, [&](node& n) { s.take(n); });
    REQUIRE(s.store.fault() == "");
    CHECK(s.numbers_taken().size() == taken);
    CHECK((earliest_of(s.store) == (taken == 200 ? 4100 : 4096)));
  }
  const auto numbers = s.numbers_taken();
  CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_CASE("extracted nodes leave the others to be redistributed") {
  store_in_use s;
  s.store.move_base(0);
  for (tick_number i = 0; i != 1000; ++i) s.add(4096 + i * 7 % 500);
  s.store.move_base(4096 + 499);
  REQUIRE(s.store.rest.first != 0);
  for (tick_number due = 4096; due != 4096 + 500; ++due) {
    REQUIRE((earliest_of(s.store) == due));
    s.store.extract(due, 1000, [&](node& n) { s.take(n); });
    REQUIRE(s.store.fault() == "");
  }
  CHECK((earliest_of(s.store) == std::nullopt));
  CHECK(s.store.rest.first == 0);
  const auto numbers = s.numbers_taken();
  CHECK(numbers.size() == 1000);
  CHECK(std::is_sorted(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return s.nodes[a].due != s.nodes[b].due ? s.nodes[a].due < s.nodes[b].due : a < b;
  }));
}

TEST_CASE("during redistribution, only a lower bound of the earliest tick is known without a search") {
  store_in_use s;
  const tick_number first = (tick_number{1} << 40) - 8;
  s.store.move_base(first - 8);
  for (const tick_number due : {first + 2, first + 3}) s.add(due);
  const auto known = [&] { return s.store.earliest(first - 8); };
  CHECK(known()->at_it != nullptr);
  s.store.move_base(first + 5);
  REQUIRE(s.store.rest.first != 0);
  SUBCASE("and there are no lists") {}
  SUBCASE("and a short list") { s.add(first + 8); }
  CHECK(known()->at_it == nullptr);
  CHECK(known()->due == first);
  CHECK((earliest_of(s.store) == first + 2));
}

TEST_CASE("lists whose nodes were all erased are not redistributed") {
  store_in_use s;
  s.store.move_base(0);
  for (const tick_number due : {3, 4, 600}) s.add(due);
  for (const node& n : s.nodes) s.pool.erase(n.position);
  s.store.move_base(700);
  CHECK(s.store.rest.first == 0);
  CHECK(s.store.fault() == "");
  CHECK(s.pool.chunks_in_use() == 0);
}

TEST_CASE("a store whose nodes were all erased has no chunks after earliest()") {
  store_in_use s;
  for (tick_number due = 1; due < tick_number{1} << 60; due *= 3) s.add(due);
  for (node& n : s.nodes) s.pool.erase(n.position);
  CHECK((earliest_of(s.store) == std::nullopt));
  CHECK(s.store.surely_empty());
  CHECK(s.pool.chunks_in_use() == 0);
  CHECK(s.store.fault() == "");
}

}  // namespace model_wheel_far_lists_parts
