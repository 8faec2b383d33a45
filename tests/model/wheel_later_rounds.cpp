// later_rounds, the radix heap of one bucket, against a sorted map of lists.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/detail/later_rounds.hpp>

#include "nodes_of.hpp"
#include "wheel_random.hpp"

using model::nodes_of;
using model::tick_number;
using rondo::detail::later_rounds;
using rondo::detail::node;
using rondo::detail::node_array;

namespace {

class rounds_trial {
 public:
  rounds_trial(int round_shift, std::uint64_t bits, model::random_numbers random)
      : round_shift_(round_shift), bits_(bits), random_(random) {
    for (int i = 0; i != 80; ++i) outside_.push_back(std::make_unique<node>());
  }

  void run(int steps) {
    for (int i = 0; i != steps; ++i) {
      const std::uint64_t dice = random_.below(16);
      if (dice < 8)
        add(some_due());
      else if (dice < 12)
        erase();
      else
        take(dice < 14);
      compare();
    }
    while (!model_.empty()) take(false);
    REQUIRE(rounds_.empty());
  }

 private:
  using round = std::vector<std::unique_ptr<node>>;

  /// Rounds around the last one taken, some of them earlier.
  tick_number some_due() {
    if (!model_.empty() && random_.one_in(3)) return model_.begin()->first;
    const tick_number distance = random_.of_any_magnitude(bits_) * (random_.one_in(4) ? -1 : 1);
    const auto number = static_cast<std::uint64_t>(distance);
    return static_cast<tick_number>((number << round_shift_) + static_cast<std::uint64_t>(last_taken_));
  }

  void add(tick_number due) {
    if (outside_.empty()) return;
    std::unique_ptr<node> added = std::move(outside_.back());
    outside_.pop_back();
    if (random_.one_in(2) || !rounds_.add_at_once(*added, due, round_shift_)) {
      rounds_.make_room(due, round_shift_);
      added->due = due;
      rounds_.add(*added, round_shift_);
    }
    model_[due].push_back(std::move(added));
  }

  void erase() {
    if (model_.empty()) return;
    auto chosen = model_.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(random_.index(model_.size())));
    round& nodes = chosen->second;
    const std::size_t i = random_.index(nodes.size());
    rounds_.erase(*nodes[i], round_shift_);
    outside_.push_back(std::move(nodes[i]));
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    if (nodes.empty()) model_.erase(chosen);
  }

  void take(bool put_back) {
    if (model_.empty()) return;
    node_array next;
    std::optional<tick_number> taken;
    while (!(taken = rounds_.take_next(next, round_shift_))) compare();
    REQUIRE(*taken == model_.begin()->first);
    const round& expected = model_.begin()->second;
    const auto found = nodes_of(next);
    REQUIRE(std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                       [](const node* a, const auto& b) { return a == b.get(); }));
    if (put_back) return rounds_.put_back(next, model_.begin()->first, round_shift_);
    last_taken_ = model_.begin()->first;
    for (auto& n : model_.begin()->second) outside_.push_back(std::move(n));
    model_.erase(model_.begin());
  }

  void compare() {
    REQUIRE(rounds_.empty() == model_.empty());
    std::map<tick_number, std::vector<const node*>> found;
    rounds_.for_each([&](const node& n) { found[n.due].push_back(&n); });
    REQUIRE(std::equal(found.begin(), found.end(), model_.begin(), model_.end(),
                       [](const auto& a, const auto& b) {
                         return a.first == b.first &&
                                std::equal(a.second.begin(), a.second.end(), b.second.begin(), b.second.end(),
                                           [](const node* x, const auto& y) { return x == y.get(); });
                       }));
  }

  later_rounds rounds_;
  int round_shift_;
  std::uint64_t bits_;
  model::random_numbers random_;
  std::map<tick_number, round> model_;
  round outside_;
  tick_number last_taken_ = 3;
};

}  // namespace

TEST_CASE("later rounds come out earliest first, each in the order in which its nodes were added") {
  struct distances {
    int round_shift;
    std::uint64_t bits;
  };
  const std::uint64_t seed = model::base_seed();
  for (const distances d : {distances{3, 2}, {3, 6}, {3, 40}, {0, 3}, {0, 62}, {9, 50}, {20, 43}, {12, 4}}) {
    INFO("round shift ", d.round_shift, ", bits ", d.bits, ", base seed: RONDO_TEST_SEED=", seed);
    for (std::uint64_t trial = 0; trial != 20; ++trial)
      rounds_trial(d.round_shift, d.bits, model::random_numbers(seed, trial)).run(1000);
  }
}

namespace {

/// So many nodes that a level of them is dealt out in parts.
class many_rounds {
 public:
  explicit many_rounds(model::random_numbers random) : random_(random) { add_many(); }

  /// Returns how often take_next() asked to be called again.
  int run() {
    int parts = 0;
    while (!model_.empty()) {
      node_array next;
      const std::optional<tick_number> taken = rounds_.take_next(next, shift);
      if (!taken) {
        if (parts++ == 0) add_many();
        REQUIRE(rounds_.fault(shift) == "");
        REQUIRE(visited() == pending());
        disturb();
        continue;
      }
      REQUIRE(*taken == model_.begin()->first);
      const auto found = nodes_of(next);
      REQUIRE(std::equal(found.begin(), found.end(), model_.begin()->second.begin(),
                         model_.begin()->second.end()));
      model_.erase(model_.begin());
    }
    REQUIRE(rounds_.empty());
    return parts;
  }

 private:
  static constexpr int shift = 3;

  std::size_t visited() {
    std::size_t count = 0;
    rounds_.for_each([&](const node&) { ++count; });
    return count;
  }
  std::size_t pending() const {
    std::size_t count = 0;
    for (const auto& round : model_) count += round.second.size();
    return count;
  }

  tick_number some_due() { return static_cast<tick_number>(1'000'000 + random_.below(100'000)) * 8 + 5; }

  /// More than there is room for in an array of as many.
  void add_many() {
    for (int i = 0; i != 20'000; ++i) add(some_due());
  }

  void add(tick_number due) {
    node& n = nodes_.emplace_back();
    if (random_.one_in(2) || !rounds_.add_at_once(n, due, shift)) {
      rounds_.make_room(due, shift);
      n.due = due;
      rounds_.add(n, shift);
    }
    model_[due].push_back(&n);
  }

  /// Between two parts: nodes come, some into rounds that are there, some before all of them; others go.
  void disturb() {
    for (int i = 0; i != 50; ++i) {
      auto round = model_.lower_bound(some_due());
      if (round == model_.end()) continue;
      add(round->first);
      const std::size_t gone = random_.index(round->second.size());
      rounds_.erase(*round->second[gone], shift);
      round->second.erase(round->second.begin() + static_cast<std::ptrdiff_t>(gone));
      if (round->second.empty()) model_.erase(round);
    }
    if (random_.one_in(3)) add(model_.begin()->first - 8 * static_cast<tick_number>(1 + random_.below(2000)));
  }

  later_rounds rounds_;
  model::random_numbers random_;
  std::deque<node> nodes_;
  std::map<tick_number, std::vector<const node*>> model_;
};

}  // namespace

TEST_CASE("a level of many nodes is dealt out in parts, between which nodes may come and go") {
  const std::uint64_t seed = model::base_seed();
  INFO("base seed: RONDO_TEST_SEED=", seed);
  for (std::uint64_t trial = 0; trial != 3; ++trial)
    CHECK(many_rounds(model::random_numbers(seed, trial)).run() >= 2);
}

TEST_CASE("between two parts all that is still to be dealt out may be erased") {
  constexpr int shift = 3;
  later_rounds rounds;
  std::deque<node> nodes;
  const auto add = [&](tick_number due) {
    node& n = nodes.emplace_back();
    n.due = due;
    rounds.make_room(due, shift);
    rounds.add(n, shift);
  };
  for (tick_number i = 0; i != 20'000; ++i) add((1'000'000 + i) * 8);
  node_array next;
  std::size_t taken = 0;
  for (; rounds.take_next(next, shift); ++taken) next.clear();
  REQUIRE(taken < nodes.size());
  for (std::size_t i = taken; i != nodes.size(); ++i) rounds.erase(nodes[i], shift);
  CHECK(rounds.empty());
  CHECK(rounds.fault(shift) == "");
  add(8);
  CHECK(rounds.take_next(next, shift).value_or(0) == 8);
  CHECK(nodes_of(next).size() == 1);
}
