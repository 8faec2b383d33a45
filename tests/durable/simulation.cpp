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

/// What a program is about.
enum class kind {
  faults,
  rare_events,  // long times in which nothing but tasks wakes a process
  busy,         // the processes have more to do than they can
  sleepless,    // a process always has something to do, and idle threads
  slow_claims,  // a claim takes about as long as a lease
  full          // the database refuses more, and nothing else happens
};

kind random_kind(simulation_dice& dice) {
  if (dice.below(40) == 0) return kind::full;
  return dice.one_of({kind::faults, kind::faults, kind::faults, kind::faults, kind::faults, kind::rare_events,
                      kind::busy, kind::sleepless, kind::slow_claims});
}

simulation_faults random_faults(simulation_dice& dice, kind k) {
  if (k == kind::full) return {.between_events = 300ms, .adopts_only = true};
  simulation_faults f{.between_events = dice.one_of<duration>({5ms, 20ms, 20ms, 60ms}),
                      .longest_stall = dice.one_of<duration>({50ms, 1s, 4s}),
                      .longest_step = dice.one_of<duration>({20ms, 1s, 5s}),
                      .longest_stage = dice.one_of<duration>({10ms, 300ms}),
                      .longest_rest = dice.one_of<duration>({1ms, 20ms, 300ms})};
  f.nested = dice.one_of({0U, 20U, 100U});
  const bool is_busy = k == kind::busy || k == kind::sleepless;
  if (is_busy) f.usual_stage = 5ms;
  if (k == kind::rare_events) f.between_events = 300ms;
  if (is_busy || k == kind::slow_claims || dice.below(8) == 0) return f;  // nothing breaks
  f.deaths = dice.one_of({0U, 100U, 300U, 500U, 500U});
  f.deaths_inside = dice.one_of({0U, 20U, 60U});
  f.stops = dice.one_of({0U, 20U, 50U});
  if (dice.below(2) == 0) f.breaks = dice.one_of({5U, 30U, 100U});
  if (dice.below(3) == 0) f.stalls = dice.one_of({10U, 50U});
  if (dice.below(4) == 0) f.stalls_inside = dice.one_of({2U, 10U});
  if (dice.below(4) == 0) f.clock_steps = dice.one_of({5U, 30U});
  if (dice.below(4) == 0) f.server_crashes = dice.one_of({5U, 30U});
  if (dice.below(4) == 0) f.slow_stages = dice.one_of({2U, 20U});
  if (dice.below(4) == 0) f.returns = dice.one_of({10U, 100U, 300U});
  return f;
}

duration run_time(simulation_dice& dice, kind k) {
  if (k == kind::full) return 6s;  // enough for the longest rest between two tries
  if (k == kind::busy || k == kind::sleepless) return 3s;
  return k == kind::rare_events ? 8s : dice.one_of<duration>({300ms, 1s, 3s});
}

simulated_world::handler_habits random_handlers(simulation_dice& dice, kind k,
                                                const simulation_faults& faults) {
  const bool many_are_lost = faults.returns != 0 && dice.below(3) == 0;
  if (k == kind::busy) return {.longest = 6s, .watches = true, .restless = true};
  if (k == kind::sleepless) return {.longest = 2s, .long_runs = 20, .watches = true, .restless = true};
  return {.fails = dice.one_of({0U, 100U, 400U}),
          .snoozes = dice.one_of({0U, 50U, 200U}),
          .gives_up = dice.one_of({0U, 50U}),
          .longest = many_are_lost            ? 6s
                     : k == kind::rare_events ? 2s
                                              : dice.one_of<duration>({0ms, 5ms, 200ms, 2s}),
          .longest_snooze = dice.one_of<duration>({0ms, 100ms, 1s}),
          .snoozes_back = dice.one_of<duration>({0ms, 0ms, 0ms, 20ms}),
          .watches = many_are_lost || dice.below(2) == 0};
}

rondo::durable::dispatcher_options random_options(simulation_dice& dice, kind k) {
  rondo::durable::dispatcher_options o{.queues = {"a", "b"}};
  o.window = dice.one_of<duration>({5ms, 200ms, 200ms, 1s, 5s});
  o.lease = dice.one_of<duration>({100ms, 400ms, 400ms, 2s, 10s});
  o.max_held = dice.one_of<std::size_t>({1, 3, 100, 100});
  o.max_attempts = dice.one_of({1, 2, 4, 10});
  o.first_retry = dice.one_of<duration>({0ms, 20ms, 500ms});
  o.longest_retry = dice.one_of<duration>({50ms, 2s});
  o.threads = dice.one_of<std::size_t>({1, 2, 8});
  if (dice.below(4) == 0) o.max_held_bytes = dice.one_of<std::size_t>({1, 300});
  if (k == kind::rare_events || k == kind::sleepless) o.window = std::max<duration>(o.window, 1s);
  if (k == kind::sleepless) o.threads = 8;
  if (k == kind::busy || k == kind::sleepless) o.lease = std::max<duration>(o.lease, 2s);  // many turns
  return o;
}

simulated_caller::habits random_calls(simulation_dice& dice) {
  simulated_caller::habits h{.longest_delay = dice.one_of<duration>({0ms, 50ms, 1s, 6s}),
                             .longest_payload = dice.one_of<std::size_t>({0, 0, 400}),
                             .lanes = dice.below(3) == 0,
                             .repeats = dice.below(3) == 0,
                             .pauses = dice.below(3) == 0,
                             .changes = dice.below(3) != 0};
  if (dice.below(4) == 0) h.lanes = h.repeats = true;  // tasks are declared with other lanes
  return h;
}

/// Returns whether the processes are so narrow that a task which waits in one of them can keep it from claiming others.
bool add_processes(simulation_dice& dice, simulated_world& world, kind k,
                   const rondo::durable::dispatcher_options& options) {
  rondo::options of_timer{.tick = dice.one_of<duration>({100us, 1ms}), .buckets = 16};
  if (dice.below(10) == 0) of_timer.max_pending = 3 + dice.below(6);
  const bool is_narrow = of_timer.max_pending != rondo::unlimited || options.max_held_bytes < 1000;
  if (is_narrow) world.expect_delays();
  for (std::uint64_t n = k == kind::slow_claims || k == kind::sleepless ? 1 : 1 + dice.below(4); n != 0; --n)
    world.add_process(options, of_timer);
  return is_narrow;
}

/// With each task that cannot be read, a dispatcher waits for its next look, and whatever is ended or given back waits,
/// too. So nothing else is repeated or has a lane.
void only_unreadable(simulated_world& world, simulated_caller::habits& calls) {
  world.expect_delays();
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
  const kind k = random_kind(dice);
  const auto options = random_options(dice, k);
  auto faults = random_faults(dice, k);
  if (k == kind::slow_claims) faults.slow_claim = options.lease / 100 * dice.one_of({40, 85, 105});
  const auto how = dice.one_of({locking::rows, locking::database});
  // SQLite's fences have the time of the clock. If that is set back together with the file, a fence may be given again.
  if (how == locking::database && faults.clock_steps != 0) faults.returns = 0;
  faults.fences_repeat = faults.returns != 0 && dice.below(4) == 0;
  simulated_world world(dice, how, faults, random_handlers(dice, k, faults));
  world.trace(trace);
  const bool is_narrow = add_processes(dice, world, k, options);
  simulated_caller::habits calls = random_calls(dice);
  calls.marks = faults.returns != 0;
  if (k == kind::sleepless) calls.changes = calls.interrupts = true;
  // They could fall behind further and further.
  if (is_narrow || k == kind::slow_claims) calls.repeats = false;
  // Where transactions are slow, a run takes about 25 ms, from its claim until its end is told. In a lane, they follow one
  // another.
  if (faults.usual_stage >= 5ms) calls.shortest_in_lanes = 700ms;
  // (Where there is only room for what cannot be read, nothing else is claimed.)
  if (!is_narrow && k == kind::faults && options.max_held > 10 && dice.below(10) == 0)
    only_unreadable(world, calls);
  simulated_caller caller(dice, world, calls);
  world.on_event([&] { caller.call(); });
  world.run_for(run_time(dice, k));
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
