// One bucket against a sorted map of lists: there is always a next round, and it is the earliest.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include <rondo/detail/bucket.hpp>

#include "wheel_random.hpp"

using model::tick_number;
using rondo::detail::bucket;
using rondo::detail::node;

namespace {

constexpr int round_shift = 3;
constexpr tick_number slot = 5;

class bucket_trial {
 public:
  explicit bucket_trial(model::random_numbers random) : nodes_(50), random_(random) {
    for (node& n : nodes_) outside_.push_back(&n);
  }

  void run(int steps) {
    for (int i = 0; i != steps; ++i) {
      const std::uint64_t dice = random_.below(16);
      if (dice < 7)
        add();
      else if (dice < 11)
        erase();
      else
        take_some();
      compare();
    }
  }

 private:
  void add() {
    if (outside_.empty()) return;
    node& n = *outside_.back();
    outside_.pop_back();
    const tick_number round = random_.of_any_magnitude(10) - (random_.one_in(4) ? 8 : 0);
    const tick_number due = round * (tick_number{1} << round_shift) + slot;
    if (!bucket_.add_to_next(n, due) && !bucket_.add_to_later(n, due, round_shift))
      bucket_.add(n, due, bucket_.make_room(due, round_shift), round_shift);
    model_[due].push_back(&n);
  }

  void erase() {
    if (model_.empty()) return;
    auto chosen = model_.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(random_.index(model_.size())));
    take_out(chosen, random_.index(chosen->second.size()));
    bucket_.erase(*outside_.back(), round_shift);
  }

  void take_some() {
    REQUIRE(bucket_.bring_up_next(round_shift));
    REQUIRE(bucket_.has_next() == !model_.empty());
    if (model_.empty()) return;
    REQUIRE(bucket_.next_due() == model_.begin()->first);
    const bool all = random_.one_in(2);
    for (std::size_t i = all ? model_.begin()->second.size() : 1; i != 0; --i) {
      take_out(model_.begin(), 0);
      REQUIRE(&bucket_.take_first() == outside_.back());
    }
    bucket_.taken();
  }

  void take_out(std::map<tick_number, std::vector<node*>>::iterator round, std::size_t i) {
    outside_.push_back(round->second[i]);
    round->second.erase(round->second.begin() + static_cast<std::ptrdiff_t>(i));
    if (round->second.empty()) model_.erase(round);
  }

  void compare() {
    std::map<tick_number, std::vector<node*>> found;
    bucket_.for_each([&](node& n) { found[n.due].push_back(&n); });
    REQUIRE(std::equal(found.begin(), found.end(), model_.begin(), model_.end()));
  }

  std::vector<node> nodes_;
  bucket bucket_;
  std::map<tick_number, std::vector<node*>> model_;
  std::vector<node*> outside_;
  model::random_numbers random_;
};

}  // namespace

TEST_CASE("a bucket gives up its earliest round first and nothing else") {
  const std::uint64_t seed = model::base_seed();
  INFO("base seed: RONDO_TEST_SEED=", seed);
  for (std::uint64_t trial = 0; trial != 40; ++trial)
    bucket_trial(model::random_numbers(seed, trial)).run(1000);
}
