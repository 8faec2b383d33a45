// far_lists, the radix heap of nodes outside the window, compared with a sorted map of lists.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <rondo/detail/chunks.hpp>
#include <rondo/detail/far_lists.hpp>

#include "nodes_of.hpp"
#include "times_slower.hpp"
#include "wheel_random.hpp"

namespace model_wheel_far_lists {

using model::earliest_of;
using model::later_by;
using model::nodes_of;
using model::tick_number;
using namespace rondo::detail;

/// The ticks of a trial: where they begin, and how far apart they are.
struct ticks {
  const char* name;
  tick_number start;
  std::uint64_t bits;
  int block_shift;
};

/// Shared by the two trials below: a store, the operations of a wheel on it, and the model, which is a map of ticks.
class store_trial {
 protected:
  store_trial(const ticks& t, std::size_t nodes, model::random_numbers random)
      : ticks_(t), random_(random), nodes_(nodes) {
    for (node& n : nodes_) outside_.push_back(&n);
  }

  using by_tick = std::map<tick_number, std::vector<const node*>>;

  node* some_outside(tick_number due) {
    if (outside_.empty()) return nullptr;
    node* const n = outside_.back();
    outside_.pop_back();
    n->due = due;
    model_[due].push_back(n);
    return n;
  }

  /// Adds a node in one of the two possible ways.
  void add_to_store(node& n) {
    const bool at_once =
        !store_.lists.empty() && is_beyond_base(n.due) && (!redistributing() || n.due > store_.rest_last);
    if (at_once && random_.one_in(2) && store_.add_at_once(n, n.due)) return;
    store_.make_room(n.due);
    store_.add(n, n.due);
  }

  void erase_some() {
    if (model_.empty()) return;
    const auto near = model_.lower_bound(later_by(model_.begin()->first, some_distance()));
    auto chosen = near == model_.end() || random_.one_in(4) ? model_.begin() : near;
    // One node, or all of its tick.
    for (std::size_t left = random_.one_in(3) ? chosen->second.size() : 1; left != 0; --left) {
      const std::size_t i = random_.index(chosen->second.size());
      pool_.erase(chosen->second[i]->position);
      forget(chosen, i);
    }
  }

  void forget(by_tick::iterator tick, std::size_t i) {
    outside_.push_back(const_cast<node*>(tick->second[i]));
    tick->second.erase(tick->second.begin() + static_cast<std::ptrdiff_t>(i));
    if (tick->second.empty()) model_.erase(tick);
  }

  /// Takes one or all nodes of the earliest tick. They are the first in `nodes`.
  void take_from(chain& nodes) {
    const auto first = model_.begin();
    for (std::size_t left = random_.one_in(2) ? first->second.size() : 1; left != 0; --left) {
      REQUIRE(nodes.front(pool_) == first->second.front());
      nodes.pop_front(pool_);
      forget(first, 0);
    }
  }

  bool redistributing() const { return store_.rest.first != 0; }
  bool is_beyond_base(tick_number t) const { return store_.block_of(t) > store_.base; }

  tick_number some_distance() { return random_.of_any_magnitude(ticks_.bits); }

  /// Compares the store with the model. The nodes in `taken` were taken out of the store, and precede those in it.
  void compare(by_tick taken = {}) {
    REQUIRE(store_.fault() == "");
    REQUIRE(pool_.fault() == "");
    std::optional<tick_number> earliest;
    store_.for_each([&](const node& n) {
      taken[n.due].push_back(&n);
      if (!earliest || n.due < *earliest) earliest = n.due;
    });
    REQUIRE(std::equal(taken.begin(), taken.end(), model_.begin(), model_.end()));
    if (earliest) REQUIRE(!store_.surely_empty());
    if (!random_.one_in(3)) return;  // because earliest() frees lists of erased nodes
    if (random_.one_in(2)) {
      const tick_number known = earliest ? later_by(*earliest, -some_distance()) : ticks_.start;
      const auto key = store_.earliest(known);
      REQUIRE(key.has_value() == earliest.has_value());
      if (key)
        REQUIRE((key->at_it != nullptr ? key->due == *earliest : known < key->due && key->due <= *earliest));
    }
    REQUIRE((earliest_of(store_) == earliest));
    REQUIRE(store_.surely_empty() == !earliest);
  }

  ticks ticks_;
  model::random_numbers random_;
  chunk_pool pool_;
  far_lists store_{pool_, ticks_.block_shift};
  std::deque<node> nodes_;
  std::vector<node*> outside_;
  by_tick model_;
};

/// The store as the `future` of a wheel: time advances, and nodes move to chains of one tick each.
class future_trial : store_trial {
 public:
  future_trial(const ticks& t, std::size_t nodes, model::random_numbers random)
      : store_trial(t, nodes, random), reached_(t.start) {
    move_window(t.start);
  }

  /// One in `compared_every` steps, and takes, is followed by a comparison with the model.
  void run(std::size_t steps, std::size_t compared_every) {
    compared_every_ = compared_every;
    for (std::size_t i = 0; i != steps; ++i) {
      step();
      if (i % compared_every == 0) compare_all();
    }
    compare_all();
    while (!model_.empty()) take_earliest();
    for (auto& taken : taken_)
      if (taken.second.front(pool_) == nullptr) taken.second.release(pool_);
    REQUIRE((earliest_of(store_) == std::nullopt));
    REQUIRE(store_.surely_empty());
    REQUIRE(pool_.chunks_in_use() == 0);
  }

 private:
  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
        return take_earliest();
      case 2:
        return redistribute(static_cast<std::uint32_t>(random_.below(6)));
      case 3:
        if (random_.one_in(8)) jump();
        return;
      case 4:
      case 5:
      case 6:
        return erase_some();
      default:
        for (std::uint64_t more = random_.one_in(6) ? 100 : 1; more != 0; --more) add(some_due());
    }
  }

  tick_number some_due() {
    if (!model_.empty() && random_.one_in(4)) return model_.begin()->first;
    if (redistributing() && random_.one_in(4))
      return std::max(reached_, random_.one_in(2) ? store_.rest_first : store_.rest_last);
    if (random_.one_in(50)) return model::last_tick;
    return later_by(reached_, some_distance());
  }

  bool is_in_window(tick_number due) const {
    if (redistributing() && due >= store_.rest_first && due <= store_.rest_last) return false;
    return !is_beyond_base(due);
  }

  void add(tick_number due) {
    node* const n = some_outside(due);
    if (n == nullptr) return;
    if (is_in_window(due))
      take(*n);
    else
      add_to_store(*n);
  }

  void take(node& n) {
    chain& taken = taken_[n.due];
    taken.make_room(pool_);
    taken.push_at_once(n);
  }

  void move_window(tick_number first) {
    store_.move_base(later_by(first, tick_number{7} << ticks_.block_shift));
    redistribute(1);  // as a wheel does at once, because all nodes may have been erased
  }

  void redistribute(std::uint32_t limit) {
    store_.redistribute(limit, [&](node& n) {
      if (is_beyond_base(n.due)) return false;
      take(n);
      return true;
    });
  }

  std::uint32_t some_limit() {
    return random_.one_in(2) ? 1000 : 1 + static_cast<std::uint32_t>(random_.below(3));
  }

  /// May redistribute some nodes before it takes the earliest ones.
  void take_earliest() {
    if (model_.empty()) return;
    const tick_number due = model_.begin()->first;
    if (is_beyond_base(due)) move_window(due);
    redistribute(static_cast<std::uint32_t>(random_.below(8)));
    if (random_.one_in(2 * compared_every_)) compare_all();
    while (redistributing() && due >= store_.rest_first && earliest_of(store_) == due)
      store_.extract(due, some_limit(), [&](node& n) { take(n); });
    if (random_.one_in(compared_every_)) compare_all();
    reached_ = due;
    take_from(taken_[due]);
    if (!model_.contains(due)) {
      REQUIRE(taken_[due].front(pool_) == nullptr);
      taken_[due].release(pool_);
      taken_.erase(due);
    }
  }

  /// Advances time and the window, at most to the earliest node, perhaps before redistribution has ended.
  void jump() {
    tick_number to = later_by(reached_, some_distance());
    if (!model_.empty()) to = std::min(to, model_.begin()->first);
    reached_ = to;
    if (is_beyond_base(to)) move_window(to);
  }

  void compare_all() {
    by_tick taken;
    for (const auto& t : taken_)
      for (const node* n : nodes_of(t.second, pool_)) taken[t.first].push_back(n);
    compare(taken);
  }

  std::size_t compared_every_ = 1;
  tick_number reached_;  // nodes are not added for earlier ticks
  std::map<tick_number, chain> taken_;
};

/// The store as the `past` of a wheel: nodes of any tick are added, and the earliest are taken from the store itself.
class past_trial : store_trial {
 public:
  /// `overlapping`: the base may be moved before redistribution has ended.
  past_trial(const ticks& t, std::size_t nodes, bool overlapping, model::random_numbers random)
      : store_trial(t, nodes, random), overlapping_(overlapping) {
    if (random_.one_in(2)) store_.move_base(t.start);
  }

  void run(std::size_t steps, std::size_t compared_every) {
    for (std::size_t i = 0; i != steps; ++i) {
      step();
      if (i % compared_every == 0) compare();
    }
    while (!model_.empty()) take_earliest();
    REQUIRE((earliest_of(store_) == std::nullopt));
    REQUIRE(pool_.chunks_in_use() == 0);
  }

 private:
  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
        return take_earliest();
      case 2:
        return redistribute();
      case 3:
        if (overlapping_) move_base(later_by(ticks_.start, some_distance()));
        return;
      case 4:
      case 5:
      case 6:
        return erase_some();
      default:
        for (std::uint64_t more = random_.one_in(6) ? 100 : 1; more != 0; --more)
          if (node* const n = some_outside(some_due())) add_to_store(*n);
    }
  }

  tick_number some_due() {
    if (!model_.empty() && random_.one_in(4)) return model_.begin()->first;
    if (redistributing() && random_.one_in(4))
      return random_.one_in(2) ? store_.rest_first : store_.rest_last;
    return later_by(ticks_.start, random_.one_in(2) ? some_distance() : -some_distance());
  }

  void redistribute() {
    store_.redistribute(static_cast<std::uint32_t>(1 + random_.below(8)), [](node&) { return false; });
  }
  void move_base(tick_number t) {
    if (!is_beyond_base(t)) return;
    store_.move_base(t);
    redistribute();
  }

  /// Redistributes until the earliest list has a single tick, and takes nodes from that list.
  void take_earliest() {
    if (model_.empty()) return;
    for (;;) {
      redistribute();
      if (random_.one_in(4)) compare();
      const tick_number due = model_.begin()->first;
      REQUIRE((earliest_of(store_) == due));
      if (chain* const nodes = store_.single_block()) return take_from(*nodes);
      if (redistributing()) continue;
      store_.move_base(due);
      redistribute();
    }
  }

  bool overlapping_;
};

const std::uint64_t trials = rondo::test::times_slower == 1 ? rondo::test::shortened(2) : 1;
constexpr tick_number first = model::first_tick;
constexpr tick_number last = model::last_tick;
constexpr tick_number year = tick_number{1} << 35;  // in milliseconds

TEST_CASE(
    "far nodes enter the window in the order of their ticks, and those of a tick in the order of addition") {
  const ticks ranges[] = {
      {"close by", 0, 5, 0},
      {"close by, in blocks", 0, 10, 6},
      {"years", -1, 40, 0},
      {"years, in blocks", 77, 40, 6},
      {"centuries", 0, 62, 6},
      {"from the first tick", first, 62, 0},
      {"the first blocks", first, 12, 6},
      {"across zero", -40, 7, 0},
      {"blocks across zero", -4000, 14, 6},
      {"the last ticks", last - 60, 7, 0},
      {"the last blocks", last - 9999, 14, 6},
      {"years before the last tick", last - year, 36, 6},
  };
  const std::uint64_t seed = model::base_seed();
  for (const ticks& t : ranges) {
    INFO(t.name, ", base seed: RONDO_TEST_SEED=", seed);
    for (std::uint64_t trial = 0; trial != trials; ++trial) {
      INFO("trial ", trial);
      future_trial(t, 80, model::random_numbers(seed, trial)).run(500, 1);
      future_trial(t, 3000, model::random_numbers(seed, trial)).run(300, 20);
    }
  }
}

TEST_CASE("nodes added in any order, even before the base, are taken in the order of their ticks") {
  const ticks ranges[] = {
      {"close by", 0, 5, 0},
      {"years", -1, 40, 0},
      {"centuries", 0, 61, 0},
      {"across zero", -40, 7, 0},
      {"the first ticks", first, 12, 0},
      {"the last ticks", last, 12, 0},
      {"all ticks", -1, 63, 0},
  };
  const std::uint64_t seed = model::base_seed();
  for (const ticks& t : ranges) {
    INFO(t.name, ", base seed: RONDO_TEST_SEED=", seed);
    for (std::uint64_t trial = 0; trial != trials; ++trial) {
      INFO("trial ", trial);
      const bool overlapping = trial % 2 == 0 && t.bits < 63;
      past_trial(t, 80, overlapping, model::random_numbers(seed, trial)).run(500, 1);
      past_trial(t, 3000, overlapping, model::random_numbers(seed, trial)).run(300, 20);
    }
  }
}

}  // namespace model_wheel_far_lists
