// What a program does from outside and from inside tasks.
#include "model/random_program.hpp"

#include <algorithm>
#include <utility>

namespace rondo::test {

namespace {

/// Programs end at this time, so that no sum overflows.
constexpr ns horizon = ns{1} << 61;

std::uint64_t unsigned_of(ns t) { return static_cast<std::uint64_t>(t); }

/// Most timers are short, run once, and are cancelled.
choices::weights acts_outside(const setting& is) {
  const std::uint64_t jobs = is.hands_over == setting::handing::nothing ? 0 : 1;
  choices::weights likely{12, 8, 4, 2, 1, 3, 8, 4, 12 * jobs, 3 * jobs};
  if (is.has_owners) likely.push_back(24);
  return likely;
}
choices::weights acts_in_tasks(const setting& is) {
  choices::weights likely{6, 3, 4, 1, 1, 1};
  if (is.has_owners) likely.push_back(12);
  return likely;
}
choices::weights acts_of_owners() {
  const std::uint64_t stops = nap_stopper::possible ? 1 : 0;
  return {10, 6, 6, 3, 3 * stops, 3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1};
}

/// Calls call() with the scope, or with the scheduler if there is none.
template <class Call>
timer_id on(manual_timer& time, timer_scope* in, Call&& call) {
  return in == nullptr ? call(time) : call(*in);
}

const char* prefix_of(const timer_scope* in) { return in == nullptr ? "" : "scope."; }

}  // namespace

setting::setting(choices& c) {
  static constexpr ns ticks[] = {1, 7, 1000, 1'000'000, 1'000'000'000};
  static constexpr ns spans[] = {3, 40, 3000, 1'000'000, ns{1} << 50};  // in ticks
  static constexpr ns starts[] = {0, 123'456'789'012, -(ns{1} << 62), ns{1} << 62};
  tick = ticks[c.below(std::size(ticks))];
  span = std::min(spans[c.weighted({2, 2, 2, 2, 1})], (ns{1} << 53) / tick) * tick;
  buckets = std::size_t{1} << c.weighted({3, 2, 2, 3, 1, 1, 2, 1, 1, 2, 1, 1, 1});  // 1 … 4096
  max_pending = c.one_in(4) ? 1 + c.below(20) : unlimited;
  hands_over = static_cast<handing>(c.weighted({2, 1, 2}));
  start = time_point(duration(starts[c.below(std::size(starts))]));
  propagates = buckets == 8 || buckets == 64;  // not a separate choice: see operate()
  has_owners = c.one_in(3);
}

random_program::random_program(choices& c, std::size_t steps, std::ostream* trace, limits most)
    : choices_(c),
      usual_steps_(steps),
      trace_(trace),
      most_(most),
      is_(c),
      likely_acts_(c.varied(acts_outside(is_))),
      likely_acts_inside_(c.varied(acts_in_tasks(is_))),
      likely_owners_acts_(is_.has_owners ? c.varied(acts_of_owners()) : choices::weights{1}),
      // Gaps are not much shorter than the spans that advance() covers, or there would be only periodic runs.
      plans_(c, is_.span / 8 + 1),
      model_(is_.tick, is_.max_pending),
      time_(options{.tick = duration(is_.tick),
                    .buckets = is_.buckets,
                    .max_pending = is_.max_pending,
                    .run_on = is_.hands_over == setting::handing::everything
                                  ? executor([this](job j) { take(std::move(j), std::nullopt); })
                                  : executor(),
                    .on_error = [this](std::exception_ptr, const firing&) { ++reported_; },
                    .on_rejected = [this](const firing& f) { rejected(f); },
                    .propagate_exceptions = is_.propagates},
            is_.start) {
  if (!is_.has_owners) return;
  keys_.emplace(time_);
  scope_.emplace(time_);
}

std::string random_program::run() {
  note_setting();
  steps(usual_steps_);
  finish();
  return wrong_;
}

void random_program::steps(std::uint64_t usual) {
  const std::uint64_t most_looks = model_.looks() + most_.looks;
  while (is_right() && model_.now() <= horizon && model_.looks() <= most_looks && another_step(usual)) {
    inside_left_ = 20;  // otherwise each run could cause more than one other
    step();
    compare();
    compare_stats();
  }
}

bool random_program::another_step(std::uint64_t usual) {
  if (most_.end == time_point::max() || scheduler::clock::now() < most_.end)
    return choices_.all_but_one_in(usual);
  choices_.take_simplest();  // so that a replay takes no further step either
  return false;
}

void random_program::step() {
  switch (const auto what = act(choices_.weighted(likely_acts_)); what) {
    case act::advance:
      return advance();
    case act::advance_to_next:
      return advance_to_next();
    case act::run_a_job:
      return run_a_job();
    case act::drop_a_job:
      return drop_a_job();
    case act::of_owners:
      return operate_owners();
    default:
      return operate(what);
  }
}

void random_program::act_inside() {
  if (inside_left_ == 0) return;
  --inside_left_;
  for (int left = 3; left != 0 && is_right() && choices_.one_in(2); --left) act_once_inside();
  if (model_.where(*running_) != runs_on::driver && !driving_ && choices_.one_in(3)) drive_elsewhere();
  if (stop_inside_ && choices_.one_in(3)) stop();
}

void random_program::act_once_inside() {
  const std::size_t what = choices_.weighted(likely_acts_inside_);
  what == acts_inside ? operate_owners() : operate(act(what));
}

void random_program::operate(act what) {
  // Not a separate choice, so that the programs in the corpus stay the same.
  if (++operations_ % 4 == 0) {
    note("shrink_to_fit()");
    time_.shrink_to_fit();
  }
  switch (what) {
    case act::cancel:
      return cancel();
    case act::reschedule:
      return reschedule();
    case act::elapse:
      return elapse();
    case act::schedule_every:
      return schedule_recurrence(plans_.simple());
    case act::schedule_recurrence:
      return schedule_recurrence(plans_.make(model_.now()));
    default:
      return schedule_once();
  }
}

void random_program::advance() {
  const ns d = passing(is_.span / 4);
  note("advance(", in_ns(d), ")");
  const deeper here(depth_);
  model_.begin_advance(model_.now() + d);
  const std::uint64_t before = begun_;
  try {
    const std::size_t said = time_.advance(duration(d));
    expect_same(said, begun_ - before, "what advance() returns");
    expect(!model_.next_run(), "advance() left out what was due");
  } catch (const std::size_t timer) {
    has_thrown(timer);
  }
}

void random_program::advance_to_next() {
  note("advance_to_next()");
  const deeper here(depth_);
  const ns due = model_.next_due();
  if (due != never && model_.walks_too_far(due)) return;
  if (due != never) model_.begin_advance(std::max(due, model_.now()));
  const std::uint64_t before = begun_;
  try {
    const std::size_t said = time_.advance_to_next();
    expect_same(said, begun_ - before, "what advance_to_next() returns");
    if (due != never) expect(!model_.next_run(), "advance_to_next() left out what was due");
  } catch (const std::size_t timer) {
    has_thrown(timer);
  }
}

random_program::refusal random_program::refused(const timer_scope* in) const {
  if (model_.closed() || (in != nullptr && scoped_.closed())) return refusal::stopped;
  return model_.full() ? refusal::full : refusal::none;
}

void random_program::schedule(plan p, ns due, runs_on where, refusal expected,
                              const std::function<timer_id(task)>& call) {
  const std::size_t n = ids_.size();
  if (expected == refusal::none) {
    expect_same(model_.schedule(std::move(p), where, due, slack_of(n)), n, "the model's numbers");
    ids_.emplace_back();
  }
  try {
    const timer_id id = call(work_of(n));
    expect(expected == refusal::none, "scheduled though it was to be refused");
    if (expected == refusal::none) ids_[n] = id;
  } catch (const stopped_error&) {
    expect(expected == refusal::stopped,
           "a stopped_error though it was to be scheduled, or to be a capacity_error");
  } catch (const capacity_error&) {
    expect(expected == refusal::full,
           "a capacity_error though it was to be scheduled, or to be a stopped_error");
  }
}

void random_program::schedule_once(timer_scope* in) {
  const wish w = some_wish();
  const runs_on where = some_place();
  const refusal expected = refused(in);
  note(result_of_scheduling(expected), prefix_of(in), w.relative ? "schedule_after(" : "schedule_at(",
       when(w.relative, w.delay), ", work", text_of_options(ids_.size(), where, slack_of(ids_.size())), ")");
  if (in != nullptr && expected == refusal::none) scoped_.add(ids_.size());
  schedule({}, w.due, where, expected, [&](task work) {
    timer_options with = some_options(where);
    const bool plain = !with.run_on && with.name.empty() && with.slack == duration::zero();
    return on(time_, in, [&](auto& target) {
      if (w.relative && plain) return target.schedule_after(duration(w.delay), std::move(work));
      if (w.relative) return target.schedule_after(duration(w.delay), std::move(work), std::move(with));
      if (plain) return target.schedule_at(clock_time(w.due), std::move(work));
      return target.schedule_at(clock_time(w.due), std::move(work), std::move(with));
    });
  });
}

void random_program::schedule_recurrence(plan p, timer_scope* in) {
  const runs_on where = some_place();
  const recurrence r = made_from(p, is_.start);
  const duration period(p.gaps[0]);
  const bool is_every = r == every(period);
  const refusal expected = refused(in);
  note(result_of_scheduling(expected), prefix_of(in), "schedule(", r, ", work",
       text_of_options(ids_.size(), where, slack_of(ids_.size())), ")");
  if (in != nullptr && expected == refusal::none) scoped_.add(ids_.size());
  schedule(std::move(p), 0, where, expected, [&](task work) {
    timer_options with = some_options(where);
    const bool plain = !with.run_on && with.name.empty() && with.slack == duration::zero();
    return on(time_, in, [&](auto& target) {
      if (is_every && plain) return target.schedule_every(period, std::move(work));
      if (is_every) return target.schedule_every(period, std::move(work), std::move(with));
      if (plain) return target.schedule(r, std::move(work));
      return target.schedule(r, std::move(work), std::move(with));
    });
  });
}

void random_program::cancel() {
  if (ids_.empty()) return;
  const std::size_t n = pick();
  // On another thread it would wait for the run that waits for the driver.
  const bool waits = choices_.one_in(3) && !(model_.running(n) && elsewhere_);
  const cancel_result expected = model_.cancel(n);
  note(waits ? "cancel_and_wait(t" : "cancel(t", n, ") -> ", text_of(expected));
  expect_same(waits ? time_.cancel_and_wait(ids_[n]) : time_.cancel(ids_[n]), expected, "what cancel() says");
}

void random_program::reschedule() {
  if (ids_.empty()) return;
  const std::size_t n = running_ && choices_.one_in(3) ? *running_ : pick();
  move(n, some_wish());
}

void random_program::move(std::size_t n, const wish& w) {
  const bool expected = model_.reschedule(n, w.due);
  note(w.relative ? "reschedule_after(t" : "reschedule_at(t", n, ", ", when(w.relative, w.delay), ") -> ",
       text_of(expected));
  const bool moved = w.relative ? time_.reschedule_after(ids_[n], duration(w.delay))
                                : time_.reschedule_at(ids_[n], clock_time(w.due));
  expect_same(moved, expected, "what reschedule says");
}

void random_program::elapse() {
  const ns d = passing(is_.span / 8);
  note("elapse(", in_ns(d), ")");
  model_.elapse(d);
  time_.elapse(duration(d));
}

/// An amount of time to let pass.
ns random_program::passing(ns usual) {
  return static_cast<ns>(choices_.amount(unsigned_of(usual) + 1, unsigned_of(is_.span) + 1));
}

/// Up to 2^50 ticks, which the clock has room for: far timers cost nothing.
ns random_program::delay() {
  const ns longest = std::min(ns{1} << 50, (ns{1} << 57) / is_.tick) * is_.tick;
  return static_cast<ns>(choices_.amount(unsigned_of(is_.span), unsigned_of(longest) + 1));
}

random_program::wish random_program::some_wish() {
  const auto how = choices_.weighted({10, 8, 1, 1});
  if (how == 3) return {true, never, never};
  // Not far in the past, because the model walks point by point from there when a periodic timer is moved.
  const ns d = how == 2 ? -passing(is_.span / 8) : delay();
  return {how != 1, d, model_.now() + d};
}

runs_on random_program::some_place() {
  switch (is_.hands_over) {
    case setting::handing::nothing:
      return runs_on::driver;
    case setting::handing::some_timers:
      return choices_.one_in(2) ? runs_on::own_executor : runs_on::driver;
    default:
      return choices_.one_in(8) ? runs_on::own_executor : runs_on::executor;
  }
}

/// The options of the timer that is being scheduled.
timer_options random_program::some_options(runs_on where) {
  const std::size_t n = ids_.size() - 1;
  const duration slack(slack_of(n));
  if (where != runs_on::own_executor) return {.name = name_of(n), .slack = slack};
  return {.run_on = [this, n](job j) { take(std::move(j), n); }, .name = name_of(n), .slack = slack};
}

/// Not a choice, so that the programs in the corpus stay the same in all else.
ns random_program::slack_of(std::size_t n) const {
  if (n % 4 != 3) return 0;
  return n % 8 == 3 ? 10 * is_.tick : is_.span / 2;
}

/// Counted from the end: usually one of the latest, and 0 is the last one.
std::size_t random_program::pick(std::size_t count) {
  return choices_.amount(std::min<std::size_t>(count, 10), count);
}

void random_program::finish() {
  for (int left = 3; left != 0 && is_right() && !model_.stopped() && choices_.one_in(3); --left) drain();
  stop_inside_ = is_right() && choices_.one_in(3);
  steps(10);
  if (!is_right()) return;
  stop();
  expect(time_.stop().empty(), "a second stop() returned something");
  compare();
  while (!jobs_.empty() && is_right()) choices_.one_in(2) ? drop_a_job() : run_a_job();
  compare_stats();
}

void random_program::drain() {
  // If there are jobs that nobody runs, the limit passes in real time.
  const ns limit = is_.hands_over == setting::handing::nothing ? passing(is_.span) : 1000;
  note("drain(", in_ns(limit), ")");
  const deeper here(depth_);
  model_.begin_drain(limit);
  try {
    const bool drained = time_.drain(duration(limit));
    expect(!model_.next_run(), "drain() left out what was due");
    expect_same(drained, model_.end_drain(), "what drain() says");
  } catch (const std::size_t timer) {
    has_thrown(timer);
  }
  compare();
  compare_stats();
}

void random_program::stop() {
  note("stop()");
  const auto expected = model_.stop();
  const auto list = time_.stop();
  expect_same(list.size(), expected.size(), "the number of unfired");
  for (std::size_t i = 0; i != list.size() && is_right(); ++i) {
    const scheduler_model::unfired& e = expected[i];
    const auto found = std::find(ids_.begin(), ids_.end(), list[i].id) - ids_.begin();
    expect_same("t" + std::to_string(found), "t" + std::to_string(e.timer), "the order of the unfired");
    expect_same(list[i].due, clock_time(e.due), "unfired::due");
    expect_same(list[i].name, name(e.timer), "unfired::name");
    expect(static_cast<bool>(list[i].work), "unfired::work is empty");
  }
}

}  // namespace rondo::test
