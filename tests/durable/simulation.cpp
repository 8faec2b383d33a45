// Random programs of dispatchers and faults, until the time is over or something is wrong.
//   --seconds S   how long (default: 10)
//   --crashes N   at least so many deaths of processes, however long that takes
//   --returns N   at least so often, the database goes back to an earlier state
//   --first N     from this seed on, instead of a random one
//   --seed N      only the program of this seed, with all that happens in it
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/schedule_access.hpp"
#include "durable/simulated_world.hpp"
#include "durable/store_access.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::durable::missed_points;
using rondo::durable::schedule;

// The users of a simulated store.

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

void simulated_caller::call() {
  const auto choice = dice_.below(100);
  if (choice < 45 || !habits_.changes) {
    if (habits_.repeats && choice < (habits_.lanes ? 15 : 5)) return repeat();
    return choice < 40 ? submit() : submit_all();
  }
  if (choice < 55) return submit_all();
  if (choice < 60) return habits_.repeats ? repeat() : submit();
  if (choice < 70) return make("cancel", [&] { store_->cancel(any_task(false)); });
  if (choice < 75)
    return make("cancel by key", [&] { store_->cancel(queue(), "k" + std::to_string(dice_.below(4))); });
  if (choice < 87) return move();
  if (choice < 95) return make("retry", [&] { store_->retry(any_task(true)); });
  if (habits_.pauses) return pause();
  submit();
}

/// A call that throws may have been made nevertheless.
template <class Call>
void simulated_caller::make(const char* what, const Call& call) {
  world_.say([&] { return std::string("a store's ") + what; });
  world_.ledger().before_call();
  try {
    call();
  } catch (const rondo::durable::store_error&) {
  } catch (const rondo::durable::key_taken&) {
  }
  world_.ledger().after_call();
}

rondo::durable::submission simulated_caller::submission() {
  rondo::durable::submission s{.queue = queue()};
  if (dice_.below(4) == 0) {
    s.key = "k" + std::to_string(dice_.below(4));
    s.replace = habits_.changes && dice_.below(2) == 0;
  }
  if (dice_.below(4) == 0) s.max_attempts = 1 + static_cast<int>(dice_.below(3));
  if (habits_.lanes && dice_.below(2) == 0) s.lane = "l" + std::to_string(dice_.below(2));
  s.payload.assign(dice_.below(habits_.longest_payload + 1), 'x');
  if (habits_.marks) s.payload += std::to_string(++submitted_);
  return s;
}

void simulated_caller::submit() {
  make("submission", [&] { store_->submit_after(dice_.up_to(habits_.longest_delay), submission()); });
}

void simulated_caller::submit_all() {
  make("list", [&] {
    std::vector<rondo::durable::planned> all(dice_.below(5));
    for (auto& p : all) {
      p.what = submission();
      if (dice_.below(2) == 0)
        p.when = duration(dice_.up_to(habits_.longest_delay));
      else
        p.when = world_.clocks().engine() + dice_.up_to(habits_.longest_delay);
    }
    store_->submit_all(all);
  });
}

void simulated_caller::repeat() {
  make("declaration", [&] {
    const auto period = dice_.one_of<duration>({50ms, 130ms, 700ms, 3s});
    auto every = schedule::every(period);
    if (habits_.unreadable)
      every = detail::schedule_access::make({unreadable, detail::schedule_access::rule_of(every).next});
    rondo::durable::repeated what{
        .queue = queue(),
        .key = "r" + std::to_string(dice_.below(4)),
        .payload = dice_.below(4) == 0 ? "other" : "",
        .when = every,
        .missed = dice_.one_of({missed_points::run_once, missed_points::run_all, missed_points::skip}),
        .lane = habits_.lanes ? dice_.one_of({"", "", "l0", "l1"}) : ""};
    if (!what.lane.empty() && period < habits_.shortest_in_lanes)
      what.when = schedule::every(habits_.shortest_in_lanes);
    store_->repeat(what);
  });
}

void simulated_caller::move() {
  make("move", [&] {
    const duration to = dice_.up_to(habits_.longest_delay);
    if (dice_.below(4) == 0)
      store_->reschedule_after(queue(), "k" + std::to_string(dice_.below(4)), to);
    else
      store_->reschedule_after(any_task(false), to);
  });
}

void simulated_caller::pause() {
  const std::string which = queue();
  if (dice_.below(3) != 0)
    make("resumption", [&] {
      world_.ledger().resumed(which);
      store_->resume(which);
    });
  else
    make("pause", [&] {
      store_->pause(which);
      world_.ledger().paused(which);
    });
}

void simulated_caller::resume_all() {
  for (const char* which : {"a", "b"})
    make("resumption", [&] {
      world_.ledger().resumed(which);
      store_->resume(which);
    });
}

/// 0 if there is none.
std::int64_t simulated_caller::any_task(bool dead) {
  const bool only_runs = habits_.interrupts && !dead;
  std::int64_t found = 0;
  std::uint64_t n = 0;
  world_.database().for_each_row([&](const row& r) {
    if (r.lives() != dead && (!only_runs || r.runs()) && dice_.below(++n) == 0) found = r.id;
  });
  return found;
}

// The programs.

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

struct simulation_result {
  std::string wrong;  // empty if nothing is
  simulation_counts counts;
  std::uint64_t runs = 0, checksum = 0;
};

/// One program. The same seed makes the same.
simulation_result simulate(std::uint64_t seed, const std::function<void(const std::string&)>& trace = {}) {
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

namespace {

using namespace durable_test;

struct arguments {
  double seconds = 10;
  std::uint64_t crashes = 0, returns = 0, first = 0;
  bool one = false;
};

arguments parse(int argc, char** argv) {
  arguments a;
  a.first = (std::uint64_t{std::random_device{}()} << 16U);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--seconds")
      a.seconds = std::stod(value);
    else if (name == "--crashes")
      a.crashes = std::stoull(value);
    else if (name == "--returns")
      a.returns = std::stoull(value);
    else if (name == "--first")
      a.first = std::stoull(value);
    else if (name == "--seed") {
      a.first = std::stoull(value);
      a.one = true;
    } else
      throw std::invalid_argument("there is no option " + name);
  }
  if (argc % 2 == 0) throw std::invalid_argument(std::string("there is no value after ") + argv[argc - 1]);
  return a;
}

/// Prints the last events, at most so many. Returns false if something is wrong.
bool replay(std::uint64_t seed, std::size_t most) {
  std::deque<std::string> last;
  const simulation_result r = simulate(seed, [&](const std::string& event) {
    last.push_back(event);
    if (last.size() > most) last.pop_front();
  });
  for (const std::string& event : last) std::cout << event << '\n';
  std::cout << "seed " << seed << ", checksum " << r.checksum << ": "
            << (r.wrong.empty() ? "nothing is wrong" : r.wrong) << '\n';
  return r.wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const arguments a = parse(argc, argv);
    if (a.one) return replay(a.first, 1'000'000) ? 0 : 1;
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    simulation_counts sum;
    std::uint64_t programs = 0, runs = 0, checksum = 0;
    const auto passed = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
    while (passed() < a.seconds || sum.deaths < a.crashes || sum.returns < a.returns) {
      const std::uint64_t seed = a.first + programs++;
      const simulation_result r = simulate(seed);
      checksum = checksum * 31 + r.checksum;
      runs += r.runs;
      sum.add(r.counts);
      if (r.wrong.empty()) continue;
      std::cout << "--seed " << seed << " goes wrong, after " << sum.deaths << " deaths and " << sum.returns
                << " returns to earlier states:\n";
      replay(seed, 60);
      return 1;
    }
    std::cout << programs << " programs from seed " << a.first << " in " << passed() << " s, checksum "
              << checksum << "\n  " << runs << " runs, " << sum.turns << " steps of dispatchers, "
              << sum.deaths << " deaths (" << static_cast<double>(sum.deaths) / passed() << " a second), "
              << sum.stops << " stops, " << sum.server_crashes << " crashes of the server, " << sum.returns
              << " returns to earlier states, " << sum.breaks << " broken connections, " << sum.stalls
              << " stalls, " << sum.clock_steps << " steps of the clock\n";
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
