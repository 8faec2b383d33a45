#include "wheel_trial.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace model {

namespace {

constexpr std::size_t shown_operations = 25;
// Otherwise callbacks that schedule for ticks already reached would keep an advance() going forever.
constexpr std::size_t most_acts_in_an_advance = 60;
constexpr tick_number no_tick = 0;

}  // namespace

template <class Kind>
wheel_trial<Kind>::wheel_trial(const world& w, random_numbers random)
    : world_(w), random_(std::move(random)) {
  sides_[0] = std::make_unique<side>(w.buckets, w.start);
  // The second wheel may differ in size and time, so that a moved node must not be looked up in the wrong bucket.
  sides_[1] =
      std::make_unique<side>(random_.one_in(2) ? w.buckets : 16, later_by(w.start, some_distance() / 2));
  for (node_id id = 0; id != w.nodes; ++id) timers_.push_back(std::make_unique<timer>(id));
  one_in_acts_ = 1 + random_.below(6);
  // next_due() corrects keys. If it were called after every step, advance() would never have to.
  compares_often_ = random_.one_in(2);
}

template <class Kind>
wheel_trial<Kind>::~wheel_trial() = default;

template <class Kind>
void wheel_trial<Kind>::run(std::size_t steps) {
  for (std::size_t i = 0; i != steps; ++i) {
    step();
    compare(0);
    compare(1);
    if (world_.nodes <= 64 || random_.one_in(32)) compare_nodes();
    if (compares_often_ || random_.one_in(16)) {
      compare_next_due(0);
      compare_next_due(1);
    }
  }
  compare_nodes();
}

template <class Kind>
void wheel_trial<Kind>::step() {
  const std::size_t s = random_.one_in(4) ? 1 : 0;
  switch (random_.below(16)) {
    case 0:
    case 1:
    case 2:
      return advance_somehow(s);
    case 3:
    case 4:
    case 5:
      return cancel(s, some_node());
    case 6:
      return replace(some_node());
    case 7:
      if (random_.one_in(4)) shrink(s);
      return;
    default:
      return schedule(s, some_node(), some_due(s));
  }
}

template <class Kind>
void wheel_trial<Kind>::schedule(std::size_t s, node_id id, tick_number due) {
  note("schedule", s, id, due);
  sides_[s]->wheel.schedule(*timers_[id], due);
  sides_[1 - s]->model.cancel(id);
  sides_[s]->model.schedule(id, due);
  compare_node(id);
}

template <class Kind>
void wheel_trial<Kind>::cancel(std::size_t s, node_id id) {
  note("cancel", s, id, no_tick);
  expect(sides_[s]->wheel.cancel(*timers_[id]) == sides_[s]->model.cancel(id),
         "cancel() returns something else");
  compare_node(id);
}

template <class Kind>
void wheel_trial<Kind>::replace(node_id id) {
  note("destroy", 0, id, no_tick);
  timers_[id].reset();  // before the new one is created, which may get the same address
  timers_[id] = std::make_unique<timer>(id);
  for (auto& s : sides_) s->model.cancel(id);
  compare_node(id);
}

template <class Kind>
void wheel_trial<Kind>::shrink(std::size_t s) {
  note("shrink_to_fit", s, 0, no_tick);
  sides_[s]->wheel.shrink_to_fit();
}

template <class Kind>
void wheel_trial<Kind>::advance_somehow(std::size_t s) {
  const std::size_t limits[] = {0, 1, 2, 5, rondo::unlimited, rondo::unlimited, rondo::unlimited};
  advance(s, some_destination(s), limits[random_.index(std::size(limits))]);
}

template <class Kind>
void wheel_trial<Kind>::advance(std::size_t s, tick_number to, std::size_t limit) {
  side& here = *sides_[s];
  note(limit == rondo::unlimited ? "advance" : "advance, limited", s, 0, to);
  const tick_number before = here.wheel.now();
  if (!sides_[1 - s]->advancing) firings_inside_ = 0;
  here.advancing = true;
  std::size_t fired = 0;
  bool thrown = false;
  try {
    const std::size_t seen = here.wheel.advance(
        to,
        [&](timer& t) {
          ++fired;
          on_due(s, t, to);
        },
        limit);
    expect(seen == fired, "advance() returns another number than it has fired");
    expect(fired <= limit, "more nodes fired than the limit allows");
  } catch (const thrown_on_purpose&) {
    thrown = true;
    note("thrown", s, 0, here.wheel.now());
  }
  here.advancing = false;
  if (!thrown && fired != limit && before <= to) {
    expect(!here.model.fire_next(to), "advance() leaves a node unfired");
    here.model.end_of_advance(to);
  }
  compare(s);
}

template <class Kind>
void wheel_trial<Kind>::on_due(std::size_t s, timer& fired, tick_number to) {
  side& here = *sides_[s];
  const node_id id = fired.id;
  note("fires", s, id, here.wheel.now());
  const auto expected = here.model.fire_next(to, Kind::in_order ? std::nullopt : std::optional(id));
  expect(expected.has_value(), "a node fires although none is due");
  expect(*expected == id, "another node is the next to fire");
  expect(!fired.scheduled(), "a node is scheduled while it fires");
  compare(s);
  if (++firings_inside_ > most_acts_in_an_advance || !random_.one_in(one_in_acts_)) return;
  for (std::uint64_t acts = random_.below(4); acts != 0; --acts) act_inside(s, id);
}

template <class Kind>
void wheel_trial<Kind>::act_inside(std::size_t s, node_id fired) {
  side& here = *sides_[s];
  const std::size_t other = 1 - s;
  const auto turn = static_cast<tick_number>(here.wheel.buckets());
  switch (random_.below(16)) {
    case 0:  // itself, again
      return schedule(s, fired, some_due(s));
    case 1:  // at the very tick being fired
      return schedule(s, random_.one_in(2) ? fired : some_node(), here.wheel.now());
    case 2:  // into the bucket being taken, a turn later or earlier
      return schedule(s, some_node(), later_by(here.wheel.now(), random_.one_in(2) ? turn : -turn));
    case 3:
    case 4:
      return schedule(s, some_node(), some_due(s));
    case 5:
      return schedule(other, some_node(), some_due(other));
    case 6:
    case 7:
      return cancel(s, some_node());
    case 8: {  // another node of the same tick
      const auto next = here.model.next_due();
      const node_id id = some_node();
      if (next && here.model.due(id) == next) cancel(s, id);
      return;
    }
    case 9:
      return replace(fired);
    case 10:
      return replace(some_node());
    case 11:
      return compare_next_due(s);
    case 12:
      if (random_.one_in(3)) throw thrown_on_purpose{};
      return;
    case 14:
      return shrink(random_.index(2));
    case 13:  // of the other wheel: this is not a nested advance()
      if (!sides_[other]->advancing) advance_somehow(other);
      return;
    default:
      return;
  }
}

template <class Kind>
tick_number wheel_trial<Kind>::some_distance() {
  const auto turn = static_cast<tick_number>(world_.buckets);
  switch (world_.distances) {
    case delays::within_turns:
      return static_cast<tick_number>(random_.below(3 * world_.buckets + 2));
    case delays::any_magnitude:
      return 1 + random_.of_any_magnitude(50);
    case delays::one_bucket:
      return turn * static_cast<tick_number>(random_.below(20)) + (random_.one_in(8) ? 1 : 0);
    case delays::one_bucket_far:
      return turn * random_.of_any_magnitude(38) + (random_.one_in(8) ? 1 : 0);
    case delays::bursts:
      return (random_.one_in(2) ? turn : 1) * static_cast<tick_number>(random_.below(3));
    case delays::one_list:
      return 50'000 + static_cast<tick_number>(random_.below(3000));
    case delays::full_turns:
      return static_cast<tick_number>(random_.below(world_.buckets)) +
             (random_.one_in(4) ? 0 : 3 * turn - sides_[0]->wheel.now() % turn);
    case delays::timeouts:
      return turn * (random_.one_in(8) ? 20 : 7) +
             (random_.one_in(4) ? static_cast<tick_number>(random_.below(3)) : 0);
    case delays::past_and_future:
      return random_.of_any_magnitude(50) * (random_.one_in(3) ? -1 : 1);
    case delays::anywhere:
      break;
  }
  return static_cast<tick_number>(random_.any());
}

template <class Kind>
tick_number wheel_trial<Kind>::some_due(std::size_t s) {
  if (random_.one_in(8)) {  // the tick of another timer
    const timer& t = *timers_[some_node()];
    if (t.scheduled()) return t.due();
  }
  if (random_.one_in(64)) return random_.one_in(2) ? last_tick : first_tick;
  return later_by(sides_[s]->wheel.now(), some_distance() - (random_.one_in(16) ? 3 : 0));
}

template <class Kind>
tick_number wheel_trial<Kind>::some_destination(std::size_t s) {
  const tick_number now = sides_[s]->wheel.now();
  const tick_number next = sides_[s]->model.next_due().value_or(now);
  switch (random_.below(8)) {
    case 0:
      return now;
    case 1:
      return later_by(now, -random_.of_any_magnitude(20));
    case 2:
      return later_by(now, 1);
    case 3:
      return later_by(next, -1);
    case 4:
    case 5:
      return next;
    default:
      // Not all the way, so that nodes remain in the wheel.
      return later_by(now, some_distance() / static_cast<tick_number>(1 + random_.below(8)));
  }
}

template <class Kind>
void wheel_trial<Kind>::finish() {
  for (node_id id = 0; id != timers_.size(); ++id) {
    if (random_.one_in(2)) schedule(random_.index(2), id, some_due(0));
  }
  note("destroy the wheel", 1, 0, no_tick);
  const wheel_model left = sides_[1]->model;
  sides_[1] = std::make_unique<side>(world_.buckets, world_.start);
  for (const auto& t : timers_) {
    if (left.due(t->id)) expect(!t->scheduled(), "a destroyed wheel leaves a node scheduled");
  }
  compare_nodes();
  one_in_acts_ = 1000;
  for (int i = 0; i != 100 && !sides_[0]->wheel.empty(); ++i) advance(0, last_tick, rondo::unlimited);
  expect(sides_[0]->wheel.empty(), "nodes are left after the last tick");
  compare_nodes();
}

template <class Kind>
void wheel_trial<Kind>::compare(std::size_t s) {
  const side& here = *sides_[s];
  expect(here.wheel.now() == here.model.now(), "now() differs");
  expect(here.wheel.size() == here.model.size(), "size() differs");
  expect(here.wheel.empty() == (here.model.size() == 0), "empty() differs");
}

template <class Kind>
void wheel_trial<Kind>::compare_next_due(std::size_t s) {
  expect(sides_[s]->wheel.next_due() == sides_[s]->model.next_due(), "next_due() differs");
}

template <class Kind>
void wheel_trial<Kind>::compare_node(node_id id) {
  const timer& t = *timers_[id];
  auto due = sides_[0]->model.due(id);
  if (!due) due = sides_[1]->model.due(id);
  expect(t.scheduled() == due.has_value(), "scheduled() differs");
  if (due) expect(t.due() == *due, "due() differs");
}

template <class Kind>
void wheel_trial<Kind>::compare_nodes() {
  for (node_id id = 0; id != timers_.size(); ++id) compare_node(id);
  check_invariants();
}

/// Verifies the invariants. A public wheel does so itself in checked builds.
template <class Kind>
void wheel_trial<Kind>::check_invariants() {
  for (const auto& s : sides_) {
    if constexpr (requires { s->wheel.fault(); }) {
      const std::string wrong = s->wheel.fault();
      if (!wrong.empty()) fail(wrong.c_str());
    }
  }
}

template <class Kind>
void wheel_trial<Kind>::expect(bool met, const char* what) const {
  if (!met) fail(what);
}

template <class Kind>
void wheel_trial<Kind>::note(const char* what, std::size_t s, node_id id, tick_number tick) {
  if (operations_.size() == 2 * shown_operations)
    operations_.erase(operations_.begin(), operations_.begin() + shown_operations);
  operations_.push_back({what, s, id, tick});
}

template <class Kind>
void wheel_trial<Kind>::fail(const char* what) const {
  std::ostringstream story;
  story << what << "; the last operations:";
  const std::size_t shown = std::min(shown_operations, operations_.size());
  for (std::size_t i = operations_.size() - shown; i != operations_.size(); ++i) {
    const operation& o = operations_[i];
    story << "\n  " << o.what << "  wheel " << o.side << " node " << o.node << " tick " << o.tick;
  }
  FAIL(story.str());
  std::abort();
}

template class wheel_trial<public_wheel>;
template class wheel_trial<small_parts>;
template class wheel_trial<any_order>;

}  // namespace model
