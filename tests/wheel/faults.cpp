// The invariants of checked builds: valid structures have no fault, and a planted fault is found and described.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include <rondo/detail/chunks.hpp>
#include <rondo/detail/delay_queue.hpp>
#include <rondo/detail/far_lists.hpp>
#include <rondo/detail/wheel_core.hpp>

#include "wheel_kinds.hpp"

namespace wheel_faults {

using namespace rondo;
using namespace rondo::detail;

constexpr std::size_t chunk_nodes = chunk_pool::chunk_nodes;

/// A wheel and its nodes.
struct world {
  explicit world(std::size_t buckets) : wheel(buckets) {}

  node& add(tick_number due) {
    node& n = nodes.emplace_back();
    wheel.schedule(n, due);
    return n;
  }
  /// Takes at most `limit` nodes.
  std::size_t take(tick_number to, std::size_t limit) {
    std::size_t taken = 0;
    while (taken != limit) {
      const wheel_core::open_tick tick = wheel.open(to);
      if (tick.nodes == nullptr) break;
      for (; taken != limit && wheel.take(tick) != nullptr; ++taken) {
      }
      wheel.close(tick);
    }
    return taken;
  }

  wheel_core wheel;
  std::deque<node> nodes;
};

/// A chain of several chunks.
struct long_chain {
  long_chain() {
    for (node& n : nodes) {
      members.make_room(pool);
      members.push_at_once(n);
    }
  }
  chunk_pool::chunk second() const { return pool.chunks[members.first].next; }

  chunk_pool pool;
  chain members;
  std::deque<node> nodes = std::deque<node>(4 * chunk_nodes);
};

/// A far store with nodes due at the ticks 8, 16, … 80.
struct store_in_use {
  store_in_use() {
    store.move_base(0);
    for (node& n : nodes) {
      n.due = 8 * (1 + (&n - nodes.data()));
      store.make_room(n.due);
      store.add(n, n.due);
    }
  }
  chunk_pool pool;
  far_lists store{pool};
  std::array<node, 10> nodes;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("a wheel has no fault after any sequence of calls") {
  world w(8);
  tick_number due = 0;
  for (int i = 0; i != 60; ++i) w.add(due += 5);
  for (std::size_t i = 0; i < w.nodes.size(); i += 7) w.wheel.erase(w.nodes[i]);
  CHECK(w.wheel.fault() == "");
  std::size_t fired = 0;
  for (tick_number to = 0; to < 310; to += 9) {
    fired += w.take(to, 3);
    CHECK(w.wheel.fault() == "");
  }
  CHECK(fired > 40);
}

TEST_CASE("a node with the number of another slot is found") {
  long_chain c;
  c.pool.erase(c.nodes[1].position);
  CHECK(c.members.fault(c.pool) == "");
  const std::uint32_t own = c.nodes[3].position;
  c.nodes[3].position = own + 1;
  CHECK(c.members.fault(c.pool) ==
        "the node in slot " + std::to_string(own) + " says that it is in slot " + std::to_string(own + 1));
}

TEST_CASE("a chain that continues past its end is found, and so is one that ends too early") {
  long_chain c;
  SUBCASE("continues") { c.pool.link(c.nodes.back().position / chunk_pool::chunk_slots, c.pool.take()); }
  SUBCASE("ends") { c.pool.link(c.second(), 0); }
  CHECK(c.members.fault(c.pool) == "the last chunk of a chain is not where it ends");
}

TEST_CASE("a wrong count of holes is found") {
  long_chain c;
  c.pool.erase(c.nodes[chunk_nodes].position);
  CHECK(c.members.fault(c.pool) == "");
  ++c.pool.holes[c.second()];
  CHECK(c.members.fault(c.pool) == "a chunk has 1 holes, but counts 2");
}

TEST_CASE("a chunk that is given back twice is found") {
  chunk_pool pool;
  const chunk_pool::chunk only = pool.take();
  pool.give_back(only);
  CHECK(pool.fault() == "");
  pool.give_back(only);  // this frees the segment that is kept
  CHECK(pool.fault() == "the spare segment is not empty");
}

TEST_CASE("a node in the wrong list of a far store is found") {
  store_in_use s;
  CHECK(s.store.fault() == "");
  SUBCASE("it belongs to another tick") { s.nodes[2].due = 200; }
  SUBCASE("it belongs to a later block") { s.nodes[2].due = 63; }
  SUBCASE("it is before the base") { s.nodes[2].due = -1; }
  CHECK(has(s.store.fault(), "far list 1.3: a node due at tick "));
  CHECK(has(s.store.fault(), " is not in its place"));
}

TEST_CASE("a node before the earliest tick of its chunk is found") {
  store_in_use s;
  s.nodes[2].due = 31;
  CHECK(s.store.fault() == "");
  s.nodes[2].due = 24;
  s.pool.chunks[s.nodes[2].position / chunk_pool::chunk_slots].earliest = 25;
  CHECK(s.store.fault() == "far list 1.3: a node due at tick 24 is not in its place");
}

TEST_CASE("a node outside the range being redistributed is found") {
  store_in_use s;
  s.store.move_base(31);
  REQUIRE(s.store.rest.first != 0);
  CHECK(s.store.fault() == "");
  s.nodes[1].due = 32;
  CHECK(s.store.fault() == "far nodes being redistributed: a node due at tick 32 is not in its place");
}

TEST_CASE("an unmarked list of a far store is found, and so is a mark without a list") {
  store_in_use s;
  SUBCASE("not marked") {
    s.store.lists[3 * far_lists::digits + 1].make_room(s.pool);
    CHECK(s.store.fault() == "far list 3.1: chunks, but not marked");
  }
  SUBCASE("marked") {
    s.store.move_base(7);
    node n;
    n.due = 7;
    s.store.make_room(n.due);
    s.store.add(n, n.due);
    chain* const earliest = s.store.single_block();
    REQUIRE(earliest != nullptr);
    REQUIRE(earliest->front(s.pool) == &n);
    earliest->pop_front(s.pool);
    CHECK(s.store.fault() == "");
    REQUIRE(earliest->front(s.pool) == nullptr);
    earliest->release(s.pool);
    CHECK(s.store.fault() == "far list 0.7: marked without chunks");
  }
}

TEST_CASE("a fault of a chain is described with the number of its far list") {
  store_in_use s;
  s.nodes[2].position += 1;
  CHECK(has(s.store.fault(), "far list 1.3: the node in slot "));
}

TEST_CASE("a delay queue has no fault, and returns the ticks that were set") {
  delay_queue queue(8);
  CHECK(queue.fault() == "");
  for (std::size_t b = 0; b != 8; ++b) queue.set(b, 100 - static_cast<tick_number>(b));
  queue.set(3, 500);
  queue.set(7, std::nullopt);
  CHECK(queue.fault() == "");
  CHECK(queue.due_of(3) == 500);
  CHECK(queue.due_of(7) == std::nullopt);
}

TEST_CASE("a fault in a bucket is found and described with its number") {
  world w(64);
  for (tick_number due = 5; due != 15; ++due) w.add(due);
  node& n = w.nodes[5];
  REQUIRE(n.due == 10);
  CHECK(w.wheel.fault() == "");

  SUBCASE("a node of another tick") {
    n.due = 11;
    CHECK(w.wheel.fault() == "bucket 10: its tick is 10, but it holds a node due at 11");
  }
  SUBCASE("a node of another round") {
    n.due = 10 - 64;
    CHECK(w.wheel.fault() == "bucket 10: its tick is 10, but it holds a node due at -54");
  }
  SUBCASE("a node of another slot") {
    n.position += 1;
    CHECK(has(w.wheel.fault(), "bucket 10: the node in slot "));
  }
  SUBCASE("a node that has left") {
    n.wheel = nullptr;
    CHECK(w.wheel.fault() == "it holds a node due at tick 10, in no wheel, or in another");
  }
}

TEST_CASE("a fault in a far store is found") {
  world w(8);
  node& earliest = w.add(1000);
  node& past = w.add(-1000);
  node& later = w.add(1007);
  CHECK(w.wheel.fault() == "");

  SUBCASE("a future node that is due before its list") {
    later.due = 100;
    CHECK(has(w.wheel.fault(), "a node due at tick 100 is not in its place"));
  }
  SUBCASE("a future node that is due after its list") {
    later.due = 5000;
    CHECK(w.wheel.fault() == "");
    later.rank = node::after_far;
    CHECK(has(w.wheel.fault(), "a node due at tick 5000 is not in its place"));
  }
  SUBCASE("a past node in another list") {
    past.due = -1'000'000;
    CHECK(has(w.wheel.fault(), "a node due at tick -1000000 is not in its place"));
  }
  SUBCASE("a node that has left") {
    earliest.wheel = nullptr;
    CHECK(w.wheel.fault() == "it holds a node due at tick 1000, in no wheel, or in another");
  }
  SUBCASE("no node at the earliest tick") {
    w.wheel.erase(past);
    REQUIRE(w.wheel.next_due() == 1000);
    CHECK(w.wheel.fault() == "");
    earliest.due = 1002;
    CHECK(w.wheel.fault() == "no far node is due at the exact key");
  }
}

TEST_CASE("a wrong count of cancelled nodes is found") {
  world w(8);
  node& n = w.add(1000);
  w.wheel.cancel(n);
  CHECK(w.wheel.fault() == "");
  n.rank |= node::far_bit;
  CHECK(w.wheel.fault() == "it holds 0 cancelled nodes, but counts 1");
}

TEST_CASE("a node in the window that is in a far store is found") {
  world w(8);
  w.add(1000);
  w.take(1000, 1);  // the window is 1000 … 1007
  node& n = w.add(999);
  CHECK(w.wheel.fault() == "");
  n.due = 1003;
  CHECK(w.wheel.fault() == "a far node due at tick 1003 is in the wrong store");
}

}  // namespace wheel_faults
