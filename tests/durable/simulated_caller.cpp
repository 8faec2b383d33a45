#include "durable/simulated_caller.hpp"

#include <chrono>
#include <stdexcept>
#include <variant>
#include <vector>

#include "durable/schedule_access.hpp"

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::durable::missed_points;
using rondo::durable::schedule;

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

}  // namespace durable_test
