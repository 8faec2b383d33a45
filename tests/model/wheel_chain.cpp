// Chains that share a pool, compared with vectors.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <rondo/detail/chunks.hpp>

#include "nodes_of.hpp"
#include "wheel_random.hpp"

namespace model_wheel_chain {

using model::nodes_of;
using namespace rondo::detail;

class chains_trial {
 public:
  chains_trial(std::size_t nodes, model::random_numbers random) : nodes_(nodes), random_(random) {
    for (node& n : nodes_) outside_.push_back(&n);
  }

  /// `filling` of 16 steps add nodes; the others take nodes out. Compares after every `compared_every`-th step.
  void run(std::size_t steps, std::uint64_t filling, std::size_t compared_every) {
    for (std::size_t i = 0; i != steps; ++i) {
      if (random_.below(16) < filling)
        add(some_chain(), 1 + random_.index(random_.one_in(8) ? 200 : 4));
      else
        take_out();
      if (i % compared_every == 0) compare();
    }
    compare();
    for (queue& q : queues_) take_all(q);
    REQUIRE(pool_.chunks_in_use() == 0);
    REQUIRE(pool_.fault() == "");
  }

 private:
  struct queue {
    chain nodes;
    std::vector<node*> model;
    std::size_t appended = 0;  // number of chains appended since it was empty
  };

  queue& some_chain() { return queues_[random_.index(queues_.size())]; }

  void add(queue& q, std::size_t count) {
    for (count = std::min(count, outside_.size()); count != 0; --count) {
      const bool makes_room = random_.one_in(4);
      if (makes_room) q.nodes.make_room(pool_);
      if (!q.nodes.push_at_once(*outside_.back())) {
        REQUIRE(!makes_room);
        q.nodes.make_room(pool_);
        REQUIRE(q.nodes.push_at_once(*outside_.back()));
      }
      q.model.push_back(outside_.back());
      outside_.pop_back();
    }
  }

  void take_out() {
    queue& q = some_chain();
    const auto size = q.model.size();
    switch (random_.below(16)) {
      case 0:
        return append(q, some_chain());
      case 1:
        return random_.one_in(4) ? take_all(q) : take(q, random_.index(size + 1));
      case 2:
      case 3:
        return take(q, std::min<std::size_t>(size, 1 + random_.index(3)));
      case 4: {  // consecutive nodes, perhaps in several chunks
        const std::size_t first = random_.index(size + 1);
        return erase(q, first, first + random_.index(std::min<std::size_t>(size - first, 300) + 1));
      }
      case 5:
        return thin_out(q);
      default: {
        if (size == 0) return;
        const std::size_t chosen = random_.index(size);
        return erase(q, chosen, chosen + 1);
      }
    }
  }

  void take(queue& q, std::size_t count) {
    for (std::size_t i = 0; i != count; ++i) {
      REQUIRE(q.nodes.front(pool_) == q.model[i]);
      q.nodes.pop_front(pool_);
    }
    forget(q, 0, count);
    release_if_empty(q);
  }
  void take_all(queue& q) {
    take(q, q.model.size());
    if (q.nodes.front(pool_) == nullptr) q.nodes.release(pool_);
    REQUIRE(q.nodes.first == 0);
  }
  void release_if_empty(queue& q) {
    if (!q.model.empty() || random_.one_in(2)) return;
    REQUIRE(q.nodes.front(pool_) == nullptr);
    q.nodes.release(pool_);
    q.appended = 0;
  }

  void erase(queue& q, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i != last; ++i) pool_.erase(q.model[i]->position);
    forget(q, first, last);
  }
  void thin_out(queue& q) {
    const std::size_t kept_of = 2 + random_.index(20);
    for (std::size_t i = q.model.size(); i-- != 0;)
      if (i % kept_of != 0) erase(q, i, i + 1);
  }
  void forget(queue& q, std::size_t first, std::size_t last) {
    const auto at = [&](std::size_t i) { return q.model.begin() + static_cast<std::ptrdiff_t>(i); };
    outside_.insert(outside_.end(), at(first), at(last));
    q.model.erase(at(first), at(last));
  }

  void append(queue& q, queue& other) {
    if (&q == &other) return;
    q.nodes.append(other.nodes, pool_);
    REQUIRE(other.nodes.first == 0);
    q.model.insert(q.model.end(), other.model.begin(), other.model.end());
    q.appended += 1 + other.appended;
    other.model.clear();
    other.appended = 0;
  }

  void compare() {
    std::size_t chunks = 0;
    for (const queue& q : queues_) {
      const auto found = nodes_of(q.nodes, pool_);
      REQUIRE(std::equal(found.begin(), found.end(), q.model.begin(), q.model.end()));
      REQUIRE(q.nodes.fault(pool_) == "");
      std::size_t own = 0;
      for (chunk_pool::chunk c = q.nodes.first; c != 0; c = pool_.chunks[c].next) ++own;
      REQUIRE(own <= most_chunks(q));
      chunks += own;
    }
    REQUIRE(pool_.chunks_in_use() == chunks);
    REQUIRE(pool_.fault() == "");
  }

  /// Of two neighbours between the first and the last chunk, at least one has 17 nodes or more: otherwise the last
  /// erase would have merged them. Where one chain was appended to another, only one side of the seam is merged.
  static std::size_t most_chunks(const queue& q) { return 3 + 2 * (q.model.size() / 17) + 2 * q.appended; }

  chunk_pool pool_;
  std::array<queue, 3> queues_;
  std::vector<node> nodes_;
  std::vector<node*> outside_;
  model::random_numbers random_;
};

TEST_CASE("chains keep their order and only as many chunks as they need, whatever is erased and appended") {
  const std::uint64_t seed = model::base_seed();
  for (const std::uint64_t filling : {4U, 7U, 8U, 11U}) {
    INFO("filling ", filling, ", base seed: RONDO_TEST_SEED=", seed);
    for (std::uint64_t trial = 0; trial != 3; ++trial) {
      chains_trial(300, model::random_numbers(seed, 100 * trial + filling)).run(1500, filling, 1);
      chains_trial(20'000, model::random_numbers(seed, 100 * trial + filling)).run(4000, filling, 50);
    }
  }
}

TEST_CASE("a chain whose first nodes are taken while new ones are added needs at most two chunks") {
  chunk_pool pool;
  chain nodes;
  std::array<node, 40> few;
  for (node& n : few) {
    nodes.make_room(pool);
    nodes.push_at_once(n);
  }
  for (int i = 0; i != 10'000; ++i) {
    node* const first = nodes.front(pool);
    REQUIRE(first == &few[static_cast<std::size_t>(i) % few.size()]);
    nodes.pop_front(pool);
    nodes.make_room(pool);
    nodes.push_at_once(*first);
    REQUIRE(pool.chunks_in_use() <= 2);
  }
}

TEST_CASE(
    "a chunk whose nodes were all taken is used again, and one whose nodes were all erased is given back") {
  chunk_pool pool;
  chain nodes;
  std::deque<node> many(chunk_pool::chunk_nodes * 3);
  const auto add = [&](node& n) {
    nodes.make_room(pool);
    nodes.push_at_once(n);
  };
  for (std::size_t i = 0; i != chunk_pool::chunk_nodes; ++i) {
    add(many[i]);
    REQUIRE(nodes.front(pool) == &many[i]);
    nodes.pop_front(pool);
  }
  CHECK(pool.chunks_in_use() == 1);
  for (node& n : many) add(n);
  CHECK(pool.chunks_in_use() == 3);
  for (std::size_t i = 0; i != chunk_pool::chunk_nodes; ++i)
    pool.erase(many[chunk_pool::chunk_nodes + i].position);
  CHECK(pool.chunks_in_use() == 2);
  CHECK(nodes_of(nodes, pool).size() == 2 * chunk_pool::chunk_nodes);
  CHECK(nodes.fault(pool) == "");
}

TEST_CASE("nodes that are moved to the end over and over do not lengthen their chain") {
  chunk_pool pool;
  chain nodes;
  std::deque<node> many(5000);
  model::random_numbers random(1, 0);
  const auto add = [&](node& n) {
    nodes.make_room(pool);
    nodes.push_at_once(n);
  };
  for (node& n : many) add(n);
  std::size_t most = 0;
  for (int i = 0; i != 200'000; ++i) {
    node& moved = many[random.index(many.size())];
    pool.erase(moved.position);
    add(moved);
    if (i % 100 == 0) most = std::max(most, pool.chunks_in_use());
  }
  CHECK(most <= 3 + 2 * many.size() / 17);
  CHECK(nodes.fault(pool) == "");
  CHECK(nodes_of(nodes, pool).size() == many.size());
}

TEST_CASE("a chunk is merged with no more neighbours than fit into one") {
  chunk_pool pool;
  chain nodes;
  std::deque<node> many(chunk_pool::chunk_nodes * 5);
  for (node& n : many) {
    nodes.make_room(pool);
    nodes.push_at_once(n);
  }
  // Leaves `left` nodes in the second to fourth chunks: 30 + 16 fit into one chunk, 30 more do not.
  const auto leave = [&](std::size_t chunk, std::size_t left) {
    for (std::size_t i = left; i != chunk_pool::chunk_nodes; ++i)
      pool.erase(many[chunk * chunk_pool::chunk_nodes + i].position);
  };
  leave(1, 30);
  leave(3, 30);
  CHECK(pool.chunks_in_use() == 5);
  leave(2, 16);
  CHECK(pool.chunks_in_use() == 4);
  CHECK(nodes.fault(pool) == "");
  CHECK(nodes_of(nodes, pool).size() == 2 * chunk_pool::chunk_nodes + 30 + 16 + 30);
}

TEST_CASE("short chains that are appended to each other share chunks") {
  chunk_pool pool;
  chain all;
  std::deque<node> many(200);
  for (node& n : many) {
    chain one;
    one.make_room(pool);
    one.push_at_once(n);
    all.append(one, pool);
  }
  CHECK(pool.chunks_in_use() <= 3 + many.size() / chunk_pool::chunk_nodes);
  CHECK(all.fault(pool) == "");
  CHECK(nodes_of(all, pool).size() == many.size());
}

TEST_CASE("the earliest tick of a merged chunk is the earlier one of its parts") {
  chunk_pool pool;
  chain nodes;
  std::deque<node> many(chunk_pool::chunk_nodes * 4);
  rondo::tick_number due = 1000;
  for (node& n : many) {
    nodes.make_room(pool);
    nodes.push_at_once(n);
    n.due = --due;
    pool.note_earliest(n.position / chunk_pool::chunk_slots, n.due);
  }
  const chunk_pool::chunk second = pool.chunks[nodes.first].next;
  for (std::size_t i = 0; i != 40; ++i) pool.erase(many[chunk_pool::chunk_nodes + i].position);
  for (std::size_t i = 0; i != 40; ++i) pool.erase(many[2 * chunk_pool::chunk_nodes + i].position);
  CHECK(pool.chunks_in_use() == 4);
  for (std::size_t i = 40; i != 50; ++i) pool.erase(many[2 * chunk_pool::chunk_nodes + i].position);
  CHECK(pool.chunks_in_use() == 3);
  CHECK(pool.chunks[nodes.first].next == second);
  CHECK(pool.chunks[second].earliest <= many[3 * chunk_pool::chunk_nodes - 1].due);
}

}  // namespace model_wheel_chain
