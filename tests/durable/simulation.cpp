#include "durable/simulation.hpp"

#include <algorithm>
#include <chrono>

#include "durable/simulated_caller.hpp"
#include "durable/simulation_dice.hpp"

namespace durable_test {

using namespace std::chrono_literals;
using rondo::duration;

namespace {

using locking = simulated_database::locking;

// Everything must be done after this time: leases that a clock has prolonged, and the longest rest after failures.
constexpr duration longest_quiet = 120s;

simulation_faults random_faults(simulation_dice& dice) {
  simulation_faults f{.between_events = dice.one_of<duration>({5ms, 20ms, 20ms, 60ms}),
                      .longest_stall = dice.one_of<duration>({50ms, 1s, 4s}),
                      .longest_step = dice.one_of<duration>({20ms, 1s, 5s}),
                      .longest_stage = dice.one_of<duration>({10ms, 300ms}),
                      .longest_rest = dice.one_of<duration>({1ms, 20ms, 300ms})};
  f.nested = dice.one_of({0U, 20U, 100U});
  if (dice.below(8) == 0) return f;  // nothing breaks
  f.deaths = dice.one_of({0U, 100U, 300U, 500U, 500U});
  f.deaths_inside = dice.one_of({0U, 20U, 60U});
  f.stops = dice.one_of({0U, 20U, 50U});
  if (dice.below(2) == 0) f.breaks = dice.one_of({5U, 30U, 100U});
  if (dice.below(3) == 0) f.stalls = dice.one_of({10U, 50U});
  if (dice.below(4) == 0) f.stalls_inside = dice.one_of({2U, 10U});
  if (dice.below(4) == 0) f.clock_steps = dice.one_of({5U, 30U});
  if (dice.below(4) == 0) f.server_crashes = dice.one_of({5U, 30U});
  if (dice.below(4) == 0) f.slow_stages = dice.one_of({2U, 20U});
  return f;
}

/// Nothing else happens for a while. Long enough for the longest rest between two tries.
simulation_faults full_database() { return {.between_events = 300ms, .adopts_only = true}; }
constexpr duration longest_full = 6s;

simulated_world::handler_habits random_handlers(simulation_dice& dice) {
  return {.fails = dice.one_of({0U, 100U, 400U}),
          .snoozes = dice.one_of({0U, 50U, 200U}),
          .gives_up = dice.one_of({0U, 50U}),
          .longest = dice.one_of<duration>({0ms, 5ms, 200ms, 2s}),
          .longest_snooze = dice.one_of<duration>({0ms, 100ms, 1s}),
          .snoozes_back = dice.one_of<duration>({0ms, 0ms, 0ms, 20ms}),
          .watches = dice.below(2) == 0};
}

rondo::durable::dispatcher_options random_options(simulation_dice& dice) {
  rondo::durable::dispatcher_options o{.queues = {"a", "b"}};
  o.window = dice.one_of<duration>({5ms, 200ms, 200ms, 1s, 5s});
  o.lease = dice.one_of<duration>({100ms, 400ms, 400ms, 2s, 10s});
  o.max_held = dice.one_of<std::size_t>({1, 3, 100, 100});
  o.max_attempts = dice.one_of({1, 2, 4, 10});
  o.first_retry = dice.one_of<duration>({0ms, 20ms, 500ms});
  o.longest_retry = dice.one_of<duration>({50ms, 2s});
  o.threads = dice.one_of<std::size_t>({1, 2, 8});
  if (dice.below(4) == 0) o.max_held_bytes = dice.one_of<std::size_t>({1, 300});
  return o;
}

simulated_caller::habits random_calls(simulation_dice& dice) {
  return {.longest_delay = dice.one_of<duration>({0ms, 50ms, 1s, 6s}),
          .longest_payload = dice.one_of<std::size_t>({0, 0, 400}),
          .lanes = dice.below(3) == 0,
          .repeats = dice.below(3) == 0,
          .pauses = dice.below(3) == 0,
          .changes = dice.below(3) != 0};
}

/// Returns whether the processes are so narrow that a task which waits in one of them can keep it from claiming others.
bool add_processes(simulation_dice& dice, simulated_world& world,
                   const rondo::durable::dispatcher_options& options) {
  rondo::options of_timer{.tick = dice.one_of<duration>({100us, 1ms}), .buckets = 16};
  if (dice.below(10) == 0) of_timer.max_pending = 3 + dice.below(6);
  const bool is_narrow = of_timer.max_pending != rondo::unlimited || options.max_held_bytes < 1000;
  if (is_narrow) world.ledger().disturbed(rondo::time_point::max());
  for (std::uint64_t n = 1 + dice.below(4); n != 0; --n) world.add_process(options, of_timer);
  return is_narrow;
}

/// With each task that cannot be read, a dispatcher waits for its next look, and whatever is ended or given back waits,
/// too. So nothing else is repeated or has a lane.
void only_unreadable(simulated_world& world, simulated_caller::habits& calls) {
  world.ledger().disturbed(rondo::time_point::max());
  calls.unreadable = calls.repeats = true;
  calls.lanes = calls.pauses = false;
}

/// Until all is done. A repeated task may be busy each time that somebody looks.
void finish(simulated_world& world) {
  for (duration waited{}; waited < longest_quiet && !world.is_wrong(); waited += 7ms) {
    if (world.ledger().all_is_done()) return;
    world.run_for(7ms);
  }
  if (!world.is_wrong()) world.ledger().wrong("these are not done: " + world.ledger().what_is_left());
}

}  // namespace

simulation_result simulate(std::uint64_t seed, const std::function<void(const std::string&)>& trace) {
  simulation_dice dice(seed);
  const bool is_full = dice.below(40) == 0;
  const auto faults = is_full ? full_database() : random_faults(dice);
  const auto how = dice.one_of({locking::rows, locking::database});
  simulated_world world(dice, how, faults, random_handlers(dice));
  world.trace(trace);
  const auto options = random_options(dice);
  const bool is_narrow = add_processes(dice, world, options);
  simulated_caller::habits calls = random_calls(dice);
  if (is_narrow) calls.repeats = false;  // they could fall behind further and further
  // (Where there is only room for what cannot be read, nothing else is claimed.)
  if (!is_narrow && options.max_held > 10 && dice.below(15) == 0) only_unreadable(world, calls);
  simulated_caller caller(dice, world, calls);
  world.on_event([&] { caller.call(); });
  world.run_for(is_full ? longest_full : dice.one_of<duration>({300ms, 1s, 3s}));
  if (!world.is_wrong()) {
    world.become_quiet();
    caller.resume_all();
    finish(world);
  }
  if (!world.is_wrong()) world.ledger().check_the_end();
  if (!world.is_wrong()) world.stop_all();
  return {world.ledger().what_is_wrong(), world.counts(), world.ledger().runs(), world.ledger().checksum()};
}

}  // namespace durable_test
