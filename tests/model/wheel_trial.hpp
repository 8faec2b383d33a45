// One run of random operations on two wheels and their models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "wheel_kinds.hpp"
#include "wheel_model.hpp"
#include "wheel_random.hpp"

namespace model {

/// How far from now timers are scheduled.
enum class delays {
  within_turns,     // a few turns of the wheel
  any_magnitude,    // 1 … 2^50, all powers of two equally often
  one_bucket,       // multiples of the number of buckets: many rounds of few buckets
  one_bucket_far,   // as one_bucket, but up to 2^50
  bursts,           // few different ticks, many timers on each
  one_list,         // all within a few thousand ticks, about 50,000 ticks away
  full_turns,       // mostly in a later turn, which fills up from beginning to end; otherwise soon
  timeouts,         // three lengths, far away, so that most timers are set again for a later tick than before
  past_and_future,  // any magnitude, also before now
  anywhere,         // all 2^64 ticks
};

struct world {
  std::string name;
  std::size_t buckets;
  tick_number start;
  delays distances;
  std::size_t nodes;
};

using rondo::test::any_order;
using rondo::test::public_wheel;
using rondo::test::small_parts;

/// Two wheels, because nodes may move from one to the other. Each operation is applied to a wheel and to its model.
/// Then their visible states must be equal. A mismatch fails the test at once.
template <class Kind>
class wheel_trial {
 public:
  wheel_trial(const world& w, random_numbers random);
  ~wheel_trial();
  wheel_trial(const wheel_trial&) = delete;
  wheel_trial& operator=(const wheel_trial&) = delete;

  void run(std::size_t steps);

  /// Destroys one wheel with its nodes in it, and fires all remaining nodes of the other.
  void finish();

 private:
  struct timer : Kind::node {
    explicit timer(node_id i) : id(i) {}
    node_id id;
  };
  struct side {
    side(std::size_t buckets, tick_number now) : wheel(buckets, now), model(now) {}
    typename Kind::template wheel<timer> wheel;
    wheel_model model;
    bool advancing = false;
    bool dead = false;
  };
  struct thrown_on_purpose {};
  struct operation {
    const char* what;
    std::size_t side;
    node_id node;
    tick_number tick;
  };

  void step();
  void advance_somehow(std::size_t s);
  void advance(std::size_t s, tick_number to, std::size_t limit);
  void on_due(std::size_t s, timer& fired, tick_number to);
  void act_inside(std::size_t s, node_id fired);
  void schedule(std::size_t s, node_id, tick_number due);
  void cancel(std::size_t s, node_id);
  void replace(node_id);
  void shrink(std::size_t s);

  node_id some_node() { return random_.index(timers_.size()); }
  tick_number some_distance();
  tick_number some_due(std::size_t s);
  tick_number some_destination(std::size_t s);

  void compare(std::size_t s);
  void compare_next_due(std::size_t s);
  void compare_node(node_id);
  void compare_nodes();
  void check_invariants();
  void expect(bool, const char* what) const;
  [[noreturn]] void fail(const char* what) const;
  void note(const char* what, std::size_t s, node_id, tick_number);

  world world_;
  random_numbers random_;
  std::vector<std::unique_ptr<timer>> timers_;  // by id; their order of destruction is part of the test
  std::array<std::unique_ptr<side>, 2> sides_;
  std::size_t firings_inside_ = 0;
  std::uint64_t one_in_acts_ = 0;
  bool compares_often_ = false;
  std::vector<operation> operations_;
};

extern template class wheel_trial<public_wheel>;
extern template class wheel_trial<small_parts>;
extern template class wheel_trial<any_order>;

}  // namespace model
