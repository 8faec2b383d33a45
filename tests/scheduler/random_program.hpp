// Random programs on virtual time, compared step by step with the model.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/model.hpp"
#include "scheduler/random_recurrence.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/virtual_time.hpp"

namespace rondo::test {

/// One program: operations from outside and, at random, from inside the tasks that they make run; inline, or
/// with an executor that runs, keeps, drops and refuses jobs.
class random_program {
 public:
  random_program(std::uint64_t seed, bool on_executor)
      : dice_(seed),
        tick_(ticks[dice_.roll(std::size(ticks))]),
        span_(spans[dice_.roll(std::size(spans))]),
        start_(duration(dice_.roll(1'000'000'000'000))),
        on_executor_(on_executor),
        // Not much shorter than the spans that advance() covers, or there would be nothing but periodic runs.
        plans_(dice_, static_cast<ns>(span_) * tick_ / 8 + 1),
        model_(tick_, on_executor),
        time_(options{.tick = duration(tick_),
                      .buckets = buckets[dice_.roll(std::size(buckets))],
                      .run_on = on_executor ? executor([this](job j) { take(std::move(j)); }) : executor(),
                      .on_error = [this](std::exception_ptr, const firing&) { ++reported_; }},
              start_) {}

  /// An empty string if all went as the model says.
  std::string run(int steps) {
    for (int i = 0; i != steps && wrong_.empty(); ++i) {
      step();
      compare("after a step");
      compare_stats();
    }
    if (!wrong_.empty()) return wrong_;
    finish();
    return wrong_;
  }

 private:
  static constexpr ns ticks[] = {1, 7, 1000, 1'000'000, 1'000'000'000};
  static constexpr std::uint64_t spans[] = {3, 40, 3000, 1'000'000};  // in ticks
  static constexpr std::size_t buckets[] = {1, 2, 8, 64, 512};

  struct kept_job {
    job call;
    model::run what;
  };

  void expect(bool right, const std::string& what) {
    if (!right && wrong_.empty()) wrong_ = what;
  }

  time_point clock_time(ns t) const { return t == never ? time_point::max() : start_ + duration(t); }

  void compare(const std::string& when) {
    expect(time_.now() == clock_time(model_.now()), "now() " + when);
    expect(time_.pending() == model_.pending(), "pending() " + when);
    const auto due = time_.next_due();
    expect(due.value_or(time_point::max()) == clock_time(model_.next_due()), "next_due() " + when);
    if (ids_.empty()) return;
    const std::size_t any = dice_.roll(ids_.size());
    expect(time_.pending(ids_[any]) == model_.pending(any), "pending(id) " + when);
  }

  /// When no task runs.
  void compare_stats() {
    const statistics s = time_.stats();
    const model::counts& m = model_.stats();
    expect(s.pending == model_.pending(), "stats().pending");
    expect(s.scheduled == m.scheduled, "stats().scheduled");
    expect(s.fired == m.fired && s.fired == fired_, "stats().fired");
    expect(s.completed == m.completed, "stats().completed");
    expect(s.cancelled == m.cancelled, "stats().cancelled");
    expect(s.returned == m.returned, "stats().returned");
    expect(s.failed == m.failed && s.failed == reported_, "stats().failed");
    expect(s.missed == m.missed, "stats().missed");
    expect(s.overlapped == m.overlapped, "stats().overlapped");
    expect(s.rejected == m.rejected, "stats().rejected");
    expect(s.lateness.count() == fired_ && s.run_time.count() == fired_, "stats().lateness.count()");
    expect(adds_up(s), "the sum of stats()");
    expect(static_cast<std::size_t>(callable_.use_count()) == model_.pending() + 1,
           "the number of callables that live");
  }

  ns delay() {
    if (dice_.one_in(10)) return 0;
    const auto span = span_ * static_cast<std::uint64_t>(tick_);
    if (dice_.one_in(20))
      return -static_cast<ns>(dice_.roll(dice_.one_in(4) ? span : 5 * static_cast<std::uint64_t>(tick_)));
    return static_cast<ns>(dice_.roll(span));
  }

  void step() {
    inside_left_ = 20;  // or each run might bring about more than one other
    switch (dice_.roll(on_executor_ ? 13 : 8)) {
      case 0:
      case 1:
        return advance();
      case 2:
        return advance_to_next();
      case 8:
      case 9:
      case 10:
      case 11:
        return run_a_job();
      case 12:
        return drop_a_job();
      default:
        return operate();
    }
  }

  void advance() {
    const ns d = std::max<ns>(delay(), 0) / 4;
    model_.begin_advance(model_.now() + d);
    const std::size_t before = begun_;
    expect(time_.advance(duration(d)) == begun_ - before, "the number that advance() returns");
    expect(!model_.next_run(), "advance() left out what was due");
  }

  void advance_to_next() {
    const ns due = model_.next_due();
    if (due != never) model_.begin_advance(std::max(due, model_.now()));
    const std::size_t before = begun_;
    expect(time_.advance_to_next() == begun_ - before, "the number that advance_to_next() returns");
    if (due != never) expect(!model_.next_run(), "advance_to_next() left out what was due");
  }

  /// Any operation that is legal inside a task as well.
  void operate() {
    switch (dice_.roll(12)) {
      case 0:
      case 1:
        return schedule_periodic();
      case 2:
      case 3:
        return cancel();
      case 4:
      case 5:
      case 6:
        return reschedule();
      case 7:
        return elapse();
      default:
        return schedule_once();
    }
  }

  template <class Schedule>
  void schedule(plan p, ns due, Schedule&& call) {
    const std::size_t n = ids_.size();
    const bool refused = model_.draining() || model_.stopped();
    if (!refused) {
      expect(model_.schedule(std::move(p), due) == n, "the model's numbers");
      ids_.emplace_back();
    }
    try {
      const timer_id id = call([this, n, alive = callable_](const firing& f) { ran(n, f); });
      expect(!refused, "scheduled though it was to be refused");
      if (!refused) ids_[n] = id;
    } catch (const stopped_error&) {
      expect(refused, "refused though it was to be scheduled");
    }
  }

  void schedule_once() {
    const bool is_never = dice_.one_in(30);
    const ns d = delay();
    const bool absolute = dice_.one_in(2);
    schedule({}, is_never ? never : model_.now() + d, [&](task work) {
      if (is_never) return time_.schedule_after(duration::max(), std::move(work));
      if (absolute) return time_.schedule_at(time_.now() + duration(d), std::move(work));
      return time_.schedule_after(duration(d), std::move(work));
    });
  }

  void schedule_periodic() {
    const plan p = plans_.make(model_.now());
    schedule(p, 0, [&](task work) { return time_.schedule(made_from(p, start_), std::move(work)); });
  }

  void cancel() {
    if (ids_.empty()) return;
    const std::size_t n = pick();
    const bool may_wait = !model_.running(n) || !elsewhere_;
    const cancel_result expected = model_.cancel(n);
    expect((dice_.one_in(2) && may_wait ? time_.cancel_and_wait(ids_[n]) : time_.cancel(ids_[n])) == expected,
           "what cancel() says");
  }

  void reschedule() {
    if (ids_.empty()) return;
    const std::size_t n = running_ && dice_.one_in(3) ? *running_ : pick();
    move(n, dice_.one_in(20) ? never : model_.now() + delay());
  }

  void move(std::size_t n, ns due) {
    expect(time_.reschedule_at(ids_[n], clock_time(due)) == model_.reschedule(n, due),
           "what reschedule says");
  }

  void elapse() {
    const ns d = std::max<ns>(delay(), 0) / (dice_.one_in(4) ? 1 : 8);
    model_.elapse(d);
    time_.elapse(duration(d));
  }

  /// Most often one of the latest.
  std::size_t pick() {
    const std::size_t among = dice_.one_in(4) ? ids_.size() : std::min<std::size_t>(ids_.size(), 10);
    return ids_.size() - 1 - dice_.roll(among);
  }

  std::string text_of(const model::run& r) const {
    const plan& p = model_.how(r.timer);
    std::ostringstream text;
    text << " timer " << r.timer << ", ";
    if (p.what == plan::kind::once)
      text << "once";
    else
      text << made_from(p, start_);
    text << ", due " << r.due << ", late " << r.lateness << ", run " << r.number << ", missed " << r.missed;
    return text.str();
  }
  std::string text_of(std::size_t n, const firing& f) const {
    return text_of({n, 0, (f.due - start_).count(), f.lateness.count(), f.run, f.missed});
  }

  /// A task.
  void ran(std::size_t n, const firing& f) {
    ++fired_;
    if (!on_executor_) {
      ++begun_;
      starting_ = model_.next_run();
    }
    const auto expected = std::exchange(starting_, std::nullopt);
    expect(expected.has_value(), "nothing was to run, but did" + text_of(n, f));
    if (!wrong_.empty()) return;
    const bool right = expected->timer == n && f.id == ids_[n] && f.due == clock_time(expected->due) &&
                       f.lateness == duration(expected->lateness) && f.run == expected->number &&
                       f.missed == expected->missed;
    if (!right) expect(false, "what was to run:" + text_of(*expected) + "; what ran:" + text_of(n, f));
    compare("at the start of a run");
    const auto outer = std::exchange(running_, n);
    if (inside_left_ != 0) act_inside();
    compare("at the end of a run");
    running_ = outer;
    const bool throws = dice_.one_in(6);
    model_.end(n, throws);
    if (throws) throw n;
  }

  void act_inside() {
    --inside_left_;
    for (auto left = dice_.roll(3); left != 0; --left) operate();
    if (dice_.one_in(6)) elapse();
    if (on_executor_ && !driving_ && dice_.one_in(3)) drive_elsewhere();
    if (stop_inside_ && dice_.one_in(3)) stop();
  }

  /// The driver goes on while a job is running, perhaps up to the next run of the same timer.
  void drive_elsewhere() {
    if (dice_.one_in(2)) move(*running_, model_.now() + delay() / 8);
    elsewhere_ = true;
    std::thread([this] { advance(); }).join();
    elsewhere_ = false;
  }

  /// The executor.
  void take(job j) {
    ++begun_;
    const auto expected = model_.next_run();
    expect(expected.has_value(), "nothing was to be handed over");
    if (!wrong_.empty()) return;
    const bool outer = std::exchange(driving_, true);
    const auto what = dice_.roll(10);
    const bool refuses = what == 9 || what == 4;
    if (what < 2) {
      call({std::move(j), *expected});
    } else if (what > 3) {
      jobs_.push_back({std::move(j), *expected});
    }
    driving_ = outer;
    if (refuses)
      model_.refuse(*expected);
    else if (what == 2 || what == 3)
      model_.drop(*expected);
    if (refuses) throw what;
  }

  void run_a_job() {
    if (!jobs_.empty()) call(take_one());
  }

  void call(kept_job j) {
    starting_ = model_.start(j.what);
    j.call();
    expect(!starting_, "a job did not start");
  }

  void drop_a_job() {
    if (jobs_.empty()) return;
    const kept_job dropped = take_one();
    model_.drop(dropped.what);
  }

  kept_job take_one() {
    std::swap(jobs_[dice_.roll(jobs_.size())], jobs_.back());
    kept_job j = std::move(jobs_.back());
    jobs_.pop_back();
    return j;
  }

  void finish() {
    if (dice_.one_in(3)) drain();
    stop_inside_ = dice_.one_in(3);
    for (int i = 0; i != 10 && wrong_.empty(); ++i) {
      step();
      compare("while it comes to its end");
    }
    stop();
    expect(time_.stop().empty(), "a second stop() returned something");
    compare("after stop()");
    while (!jobs_.empty() && wrong_.empty()) dice_.one_in(2) ? run_a_job() : drop_a_job();
    compare_stats();
  }

  void drain() {
    // With jobs that nobody runs the limit passes in real time.
    const ns limit = on_executor_ ? std::min<ns>(delay(), 1000) : delay();
    model_.begin_drain(std::max<ns>(limit, 0));
    const bool drained = time_.drain(duration(std::max<ns>(limit, 0)));
    expect(!model_.next_run(), "drain() left out what was due");
    expect(drained == model_.end_drain(), "what drain() says");
    compare("after drain()");
    compare_stats();
  }

  void stop() {
    const auto expected = model_.stop();
    const auto list = time_.stop();
    expect(list.size() == expected.size(), "the number of unfired");
    for (std::size_t i = 0; i != list.size() && wrong_.empty(); ++i) {
      expect(list[i].id == ids_[expected[i].timer],
             "the order of the unfired at " + std::to_string(i) + " of " + std::to_string(list.size()) + ":" +
                 text_of({expected[i].timer, 0, expected[i].due, 0, 0, 0}) + "; and due at " +
                 std::to_string((list[i].due - start_).count()) + (driving_ || running_ ? " inside" : ""));
      expect(list[i].due == clock_time(expected[i].due), "unfired::due");
      expect(static_cast<bool>(list[i].work), "unfired::work");
    }
  }

  dice dice_;
  const ns tick_;
  const std::uint64_t span_;
  const time_point start_;
  const bool on_executor_;
  random_plans plans_;
  model model_;
  std::shared_ptr<int> callable_ = std::make_shared<int>(0);
  std::vector<timer_id> ids_;
  std::vector<kept_job> jobs_;
  std::optional<model::run> starting_;
  std::optional<std::size_t> running_;
  bool driving_ = false;    // the executor has been called by the driver
  bool elsewhere_ = false;  // the driver is on another thread than the run in progress
  bool stop_inside_ = false;
  int inside_left_ = 0;  // runs of this step that may do something
  std::uint64_t begun_ = 0, fired_ = 0, reported_ = 0;
  std::string wrong_;
  manual_timer time_;  // last: its tasks use the rest
};

}  // namespace rondo::test
