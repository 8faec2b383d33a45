// The users of a simulated store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rondo/durable.hpp>

#include "durable/simulated_world.hpp"
#include "durable/simulation_dice.hpp"
#include "durable/store_access.hpp"

namespace durable_test {

/// Makes random calls, and has the ledger compare the rows before and after each.
class simulated_caller {
 public:
  struct habits {
    rondo::duration longest_delay{};
    std::size_t longest_payload = 0;
    bool unreadable = false;              // some schedules are
    bool marks = false;                   // each payload is another one
    bool interrupts = false;              // of live tasks, only those that run are changed by their ids
    rondo::duration shortest_in_lanes{};  // no task with a lane is repeated more often
    bool lanes = false, repeats = false, pauses = false, changes = false;
  };

  simulated_caller(simulation_dice& dice, simulated_world& world, const habits& h)
      : dice_(dice),
        world_(world),
        habits_(h),
        store_(rondo::durable::detail::store_access::make(world.database().open())) {}

  void call();
  void resume_all();

 private:
  template <class Call>
  void make(const char* what, const Call& call);
  std::string queue() { return dice_.below(3) == 0 ? "b" : "a"; }
  rondo::durable::submission submission();
  void submit();
  void submit_all();
  void repeat();
  void move();
  void pause();
  std::int64_t any_task(bool dead);

  simulation_dice& dice_;
  simulated_world& world_;
  const habits habits_;
  const std::unique_ptr<rondo::durable::store> store_;
  std::uint64_t submitted_ = 0;
};

}  // namespace durable_test
