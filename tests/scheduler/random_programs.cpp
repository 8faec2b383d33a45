// Random programs on virtual time, compared step by step with the model.
#include "scheduler/model.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/virtual_time.hpp"

namespace {

using namespace rondo::test;
using rondo::cancel_result;
using rondo::duration;
using rondo::firing;
using rondo::manual_timer;
using rondo::options;
using rondo::time_point;
using rondo::timer_id;

/// One program: operations from outside and, at random, from inside the tasks that they make run.
class program {
 public:
  explicit program(std::uint64_t seed)
      : dice_(seed),
        tick_(ticks[dice_.roll(std::size(ticks))]),
        span_(spans[dice_.roll(std::size(spans))]),
        start_(duration(dice_.roll(1'000'000'000'000))),
        time_(options{.tick = duration(tick_),
                      .buckets = buckets[dice_.roll(std::size(buckets))],
                      .on_error = [this](std::exception_ptr, const firing&) { ++reported_; }},
              start_),
        model_(tick_) {}

  /// An empty string if all went as the model says.
  std::string run(int steps) {
    for (int i = 0; i != steps && wrong_.empty(); ++i) {
      step();
      compare("after a step");
    }
    expect(time_.stats().scheduled == ids_.size(), "stats().scheduled");
    expect(time_.stats().fired == fired_, "stats().fired");
    expect(time_.stats().failed == thrown_ && reported_ == thrown_, "stats().failed");
    expect(time_.stats().missed == missed_, "stats().missed");
    expect(time_.stats().cancelled == cancelled_, "stats().cancelled");
    expect(adds_up(time_.stats()), "the sum of stats()");
    return wrong_;
  }

 private:
  using ns = model::ns;
  static constexpr ns ticks[] = {1, 7, 1000, 1'000'000, 1'000'000'000};
  static constexpr std::uint64_t spans[] = {3, 40, 3000, 10'000'000};  // in ticks
  static constexpr std::size_t buckets[] = {1, 2, 8, 64, 512};

  void expect(bool right, const char* what) {
    if (!right && wrong_.empty()) wrong_ = what;
  }

  time_point clock_time(ns t) const { return t == model::never ? time_point::max() : start_ + duration(t); }

  void compare(const char* when) {
    expect(time_.now() == clock_time(model_.now()), when);
    expect(time_.pending() == model_.pending(), when);
    const auto due = time_.next_due();
    expect(due.value_or(time_point::max()) == clock_time(model_.next_due()), when);
    if (ids_.empty()) return;
    const std::size_t any = dice_.roll(ids_.size());
    expect(time_.pending(ids_[any]) == model_.pending(any), when);
  }

  ns delay() {
    if (dice_.one_in(10)) return 0;
    if (dice_.one_in(20)) return -static_cast<ns>(dice_.roll(static_cast<std::uint64_t>(5 * tick_)));
    return static_cast<ns>(dice_.roll(span_ * static_cast<std::uint64_t>(tick_)));
  }

  void step() {
    switch (dice_.roll(8)) {
      case 0:
      case 1:
        return advance();
      case 2:
        return advance_to_next();
      default:
        return operate();
    }
  }

  void advance() {
    const ns d = std::max<ns>(delay(), 0) / 4;
    model_.begin_advance(model_.now() + d);
    const std::size_t before = fired_;
    const std::size_t begun = time_.advance(duration(d));
    expect(begun == fired_ - before, "the number that advance() returns");
    expect(!model_.next_run(), "advance() left out what was due");
  }

  void advance_to_next() {
    const ns due = model_.next_due();
    if (due != model::never) model_.begin_advance(std::max(due, model_.now()));
    const std::size_t before = fired_;
    expect(time_.advance_to_next() == fired_ - before, "the number that advance_to_next() returns");
    if (due != model::never) expect(!model_.next_run(), "advance_to_next() left out what was due");
  }

  /// Any operation that is legal inside a task as well.
  void operate() {
    switch (dice_.roll(12)) {
      case 0:
        return schedule_every();
      case 1:
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

  void schedule_once() {
    const ns d = delay();
    const bool never = dice_.one_in(30);
    const std::size_t n = model_.schedule(never ? model::never : model_.now() + d, 0);
    expect(n == ids_.size(), "the model's numbers");
    ids_.emplace_back();
    ids_[n] = dice_.one_in(2) && !never
                  ? time_.schedule_at(time_.now() + duration(d), task(n))
                  : time_.schedule_after(never ? duration::max() : duration(d), task(n));
  }

  void schedule_every() {
    // Not much shorter than the spans that advance() covers, or there would be nothing but periodic runs.
    const ns period = std::max<ns>(delay(), 0) + static_cast<ns>(span_) * tick_ / 8 + 1;
    const std::size_t n = model_.schedule(model_.now() + period, period);
    ids_.emplace_back();
    ids_[n] = time_.schedule_every(duration(period), task(n));
  }

  void cancel() {
    if (ids_.empty()) return;
    const std::size_t n = pick();
    const bool is_running = running_ && *running_ == n;
    const bool was_pending = model_.cancel(n);
    const cancel_result expected = is_running    ? cancel_result::running
                                   : was_pending ? cancel_result::cancelled
                                                 : cancel_result::gone;
    cancelled_ += was_pending;
    expect((dice_.one_in(2) ? time_.cancel(ids_[n]) : time_.cancel_and_wait(ids_[n])) == expected,
           "what cancel() says");
  }

  void reschedule() {
    if (ids_.empty()) return;
    const std::size_t n = pick();
    const bool never = dice_.one_in(20);
    const ns due = never ? model::never : model_.now() + delay();
    expect(time_.reschedule_at(ids_[n], clock_time(due)) == model_.reschedule(n, due),
           "what reschedule says");
  }

  void elapse() {
    const ns d = std::max<ns>(delay(), 0) / 8;
    model_.elapse(d);
    time_.elapse(duration(d));
  }

  /// Most often one of the latest.
  std::size_t pick() {
    const std::size_t among = dice_.one_in(4) ? ids_.size() : std::min<std::size_t>(ids_.size(), 10);
    return ids_.size() - 1 - dice_.roll(among);
  }

  rondo::task task(std::size_t n) {
    return [this, n](const firing& f) { ran(n, f); };
  }

  void ran(std::size_t n, const firing& f) {
    ++fired_;
    missed_ += f.missed;
    const auto expected = model_.next_run();
    expect(expected && expected->timer == n, "another timer was to run");
    if (!wrong_.empty()) return;
    expect(f.id == ids_[n], "firing::id");
    expect(f.due == clock_time(expected->due), "firing::due");
    expect(f.lateness == duration(expected->lateness), "firing::lateness");
    expect(f.run == expected->number, "firing::run");
    expect(f.missed == expected->missed, "firing::missed");
    compare("at the start of a run");
    running_ = n;
    for (auto left = dice_.roll(3); left != 0; --left) operate();
    compare("at the end of a run");
    running_.reset();
    if (dice_.one_in(6)) {
      ++thrown_;
      throw n;
    }
  }

  dice dice_;
  const ns tick_;
  const std::uint64_t span_;
  const time_point start_;
  std::vector<timer_id> ids_;
  std::optional<std::size_t> running_;
  std::uint64_t fired_ = 0, missed_ = 0, thrown_ = 0, reported_ = 0, cancelled_ = 0;
  std::string wrong_;
  manual_timer time_;  // after what its tasks use
  model model_;
};

TEST_CASE("random programs run as the model says") {
  for (const std::uint64_t seed : seeds("random programs", 400)) {
    CAPTURE(seed);
    CHECK(program(seed).run(150) == "");
  }
}

}  // namespace
