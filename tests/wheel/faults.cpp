// What checked builds look at: sound structures have no fault, and what is planted in them is found, in words.
#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <memory>
#include <string>

#include <rondo/detail/bucket.hpp>
#include <rondo/detail/delay_queue.hpp>
#include <rondo/detail/later_rounds.hpp>
#include <rondo/detail/node_array.hpp>
#include <rondo/detail/wheel_core.hpp>

namespace {

using rondo::tick_number;
using rondo::detail::bucket;
using rondo::detail::delay_queue;
using rondo::detail::later_rounds;
using rondo::detail::node;
using rondo::detail::node_array;

constexpr int round_shift = 3;  // of a wheel of eight buckets

struct open_gate {
  static bool open() { return true; }
  static void earliest() {}
  static void leave(node&) {}
};

/// Eight buckets with timers of several rounds, and holes where others were.
struct world {
  rondo::detail::wheel_core<rondo::detail::unlocked> wheel{8};
  std::deque<node> nodes = std::deque<node>(60);

  world() {
    tick_number due = 0;
    for (node& n : nodes) wheel.schedule(n, due += 5, open_gate());
    for (std::size_t i = 0; i < nodes.size(); i += 7) wheel.cancel(nodes[i]);
  }
  ~world() {
    for (node& n : nodes) n.wheel = nullptr;
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;
};

TEST_CASE("a wheel has no fault, whatever was done to it") {
  world w;
  CHECK(w.wheel.fault() == "");
  std::size_t fired = 0;
  for (tick_number to = 0; to < 310; to += 9) {
    fired += w.wheel.take_due(to, 3, [](node&, tick_number) {});
    CHECK(w.wheel.fault() == "");
  }
  CHECK(fired > 40);
}

TEST_CASE("a node that says it is elsewhere is found") {
  node_array array;
  std::array<node, 5> nodes;
  array.make_room(5);
  for (node& n : nodes) array.push_back(n);
  array.erase(nodes[1]);
  CHECK(array.fault() == "");
  nodes[3].position = 4;
  CHECK(array.fault() == "the node in slot 3 of an array says that it is in slot 4");
  array.erase(nodes[3]);  // in truth the other one
  CHECK(array.fault() != "");
}

TEST_CASE("a node in the wrong level of the later rounds is found") {
  later_rounds later;
  std::array<node, 3> nodes;
  for (node& n : nodes) {
    n.due = 8 * (1 + 100 * (&n - nodes.data()));
    later.make_room(n.due, round_shift);
    later.add(n, round_shift);
  }
  CHECK(later.fault(round_shift) == "");
  const tick_number due = std::exchange(nodes[2].due, nodes[0].due);
  CHECK(later.fault(round_shift).find("level 7 of the later rounds: a node due at tick 8") !=
        std::string::npos);
  nodes[2].due = due;
  nodes[0].due = 0;  // before the base
  CHECK(later.fault(round_shift).find("with the base at 8") != std::string::npos);
}

TEST_CASE("a node whose round is not that of its array is found") {
  bucket b;
  std::array<node, 4> nodes;
  for (node& n : nodes) {
    const tick_number due = 8 * (1 + (&n - nodes.data()) / 2);
    b.add(n, due, b.make_room(due, round_shift), round_shift);
  }
  CHECK(b.fault(round_shift) == "");
  nodes[1].due = 16;
  CHECK(b.fault(round_shift) == "its next round is tick 8, and holds a node due at 16");
  nodes[1].due = 8;
  nodes[3].due = 8;
  CHECK(b.fault(round_shift) != "");
}

TEST_CASE("a delay queue has no fault, and knows what it was told") {
  delay_queue queue(8);
  CHECK(queue.fault() == "");
  for (std::size_t b = 0; b != 8; ++b) queue.set(b, 100 - static_cast<tick_number>(b));
  queue.set(3, 500);
  queue.remove(7);
  CHECK(queue.fault() == "");
  CHECK(queue.due_of(3) == 500);
  CHECK(queue.due_of(7) == std::nullopt);
}

TEST_CASE("what does not fit together in a wheel is found, with the bucket that it is in") {
  world w;
  node& n = w.nodes[1];  // due at tick 10, in bucket 2, in the next round there
  REQUIRE(n.due == 10);

  SUBCASE("a node that has left") {
    n.wheel = nullptr;
    CHECK(w.wheel.fault() == "bucket 2: it holds a node due at tick 10, in no wheel, or in another");
  }
  SUBCASE("a node of another bucket") {
    n.due = 11;
    CHECK(w.wheel.fault().find("bucket 2: ") == 0);
  }
  SUBCASE("a node of an earlier round, which would come late") {
    n.due = 2;
    CHECK(w.wheel.fault().find("bucket 2: its next round is tick 10, and holds a node due at 2") == 0);
  }
}

}  // namespace
