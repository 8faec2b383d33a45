// node_array against a vector.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <rondo/detail/node_array.hpp>

#include "nodes_of.hpp"
#include "wheel_random.hpp"

using model::nodes_of;
using rondo::detail::node;
using rondo::detail::node_array;

namespace {

class array_trial {
 public:
  array_trial(std::size_t nodes, model::random_numbers random) : nodes_(nodes), random_(random) {
    for (node& n : nodes_) outside_.push_back(&n);
  }

  /// `filling`: how many of 16 steps add rather than take.
  void run(std::size_t steps, std::uint64_t filling) {
    for (std::size_t i = 0; i != steps; ++i) {
      if (random_.below(16) < filling)
        add(1 + random_.index(3));
      else
        take();
      compare();
    }
  }

 private:
  void add(std::size_t count) {
    count = std::min(count, outside_.size());
    array_.make_room(static_cast<std::uint32_t>(count));
    for (; count != 0; --count) {
      REQUIRE(array_.has_room());
      array_.push_back(*outside_.back());
      model_.push_back(outside_.back());
      outside_.pop_back();
    }
  }

  void take() {
    if (model_.empty()) return;
    std::size_t taken = 0;
    if (random_.one_in(3)) {
      REQUIRE(&array_.pop_front() == model_.front());
    } else {
      taken = random_.index(model_.size());
      array_.erase(*model_[taken]);
    }
    outside_.push_back(model_[taken]);
    model_.erase(model_.begin() + static_cast<std::ptrdiff_t>(taken));
    if (random_.one_in(100)) empty();
  }

  void empty() {
    node_array other;
    other.swap(array_);
    REQUIRE(array_.empty());
    REQUIRE(other.size() == model_.size());
    if (random_.one_in(2)) return array_.swap(other);
    other.clear();
    REQUIRE(other.empty());
    outside_.insert(outside_.end(), model_.begin(), model_.end());
    model_.clear();
  }

  void compare() {
    REQUIRE(array_.size() == model_.size());
    REQUIRE(array_.empty() == model_.empty());
    const auto found = nodes_of(array_);
    REQUIRE(std::equal(found.begin(), found.end(), model_.begin(), model_.end()));
    for (std::size_t i = 1; i < model_.size(); ++i) REQUIRE(model_[i - 1]->position < model_[i]->position);
  }

  node_array array_;
  std::vector<node> nodes_;
  std::vector<node*> model_;
  std::vector<node*> outside_;
  model::random_numbers random_;
};

}  // namespace

TEST_CASE("an array of nodes keeps their order through holes, squeezing and growth") {
  const std::uint64_t seed = model::base_seed();
  for (const std::uint64_t filling : {4U, 6U, 8U, 11U}) {
    INFO("filling ", filling, ", base seed: RONDO_TEST_SEED=", seed);
    array_trial(60, model::random_numbers(seed, filling)).run(2000, filling);
  }
}

TEST_CASE("an array of nodes whose first ones go as new ones come does not grow") {
  std::vector<node> nodes(4);
  node_array array;
  for (node& n : nodes) {
    array.make_room();
    array.push_back(n);
  }
  for (int i = 0; i != 10000; ++i) {
    node& first = array.pop_front();
    array.make_room();
    array.push_back(first);
    REQUIRE(first.position < 1000);
  }
}
