// The scheduling calls construct the callable in its final place.
#include <rondo/manual_timer.hpp>

#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "scheduler/virtual_time.hpp"

namespace scheduler_callable_in_place {

using namespace rondo;
using namespace rondo::test;

/// Counts its copies, moves and runs.
struct counting {
  struct counts {
    int copies = 0;
    int moves = 0;
    int runs = 0;
  };

  explicit counting(counts& c) : all(&c) {}
  counting(const counting& other) : all(other.all) { ++all->copies; }
  counting(counting&& other) noexcept : all(other.all) { ++all->moves; }
  counting& operator=(const counting&) = delete;
  void operator()() const { ++all->runs; }

  counts* all;
};

/// Calls check(time, schedule_with) for each scheduling call in turn. schedule_with(callable) makes a timer that runs
/// once.
template <class Check>
void for_each_call(Check check) {
  manual_timer time;
  const on inline_on([](job j) { j(); });
  const auto once = every(1ms).times(1);
  check(time, [&](auto&& f) { time.schedule_after(1ms, std::forward<decltype(f)>(f)); });
  check(time, [&](auto&& f) { time.schedule_at(time.now(), std::forward<decltype(f)>(f)); });
  check(time, [&](auto&& f) { time.schedule(once, std::forward<decltype(f)>(f)); });
  check(time, [&](auto&& f) { time.schedule_after(1ms, std::forward<decltype(f)>(f), inline_on); });
  check(time, [&](auto&& f) { time.schedule_at(time.now(), std::forward<decltype(f)>(f), inline_on); });
  check(time, [&](auto&& f) { time.schedule(once, std::forward<decltype(f)>(f), inline_on); });
}

TEST_CASE("a callable is moved or copied into the timer once, and never again") {
  for_each_call([](manual_timer& time, auto schedule_with) {
    counting::counts moved;
    schedule_with(counting(moved));
    time.advance(1ms);
    CHECK(moved.moves == 1);
    CHECK(moved.copies == 0);
    CHECK(moved.runs == 1);

    counting::counts copied;
    const counting kept(copied);
    schedule_with(kept);
    time.advance(1ms);
    CHECK(copied.moves == 0);
    CHECK(copied.copies == 1);
    CHECK(copied.runs == 1);
  });
}

TEST_CASE("a task object, or a type that converts to one, is scheduled like a callable") {
  struct converts {
    counting::counts* all;
    operator task() const { return counting(*all); }
  };
  for_each_call([](manual_timer& time, auto schedule_with) {
    counting::counts all;
    schedule_with(task(counting(all)));
    time.advance(1ms);
    schedule_with(converts{&all});
    time.advance(1ms);
    CHECK(all.runs == 2);
  });
  manual_timer time;
  counting::counts all;
  time.schedule_after(1ms, {counting(all)});
  CHECK(time.advance(1ms) == 1);
}

struct refuses_to_move {
  refuses_to_move() = default;
  refuses_to_move(const refuses_to_move&) { throw std::runtime_error("no copy"); }
  refuses_to_move& operator=(const refuses_to_move&) = delete;
  void operator()() const {}
};

TEST_CASE("if copying a callable throws, no timer is left behind and its place is free") {
  manual_timer time(options{.max_pending = 1});
  const refuses_to_move work;
  CHECK_THROWS_AS(time.schedule_after(1ms, work), std::runtime_error);
  CHECK_THROWS_AS(time.schedule_every(1ms, work), std::runtime_error);
  CHECK(time.pending() == 0);
  CHECK(time.stats().scheduled == 0);
  CHECK(time.pending(time.schedule_after(1ms, [] {})));
}

TEST_CASE("a refused callable is not moved from") {
  for_each_call([](manual_timer& stopped, auto schedule_with) {
    stopped.stop();
    std::function<void()> work = [] {};
    CHECK_THROWS_AS(schedule_with(std::move(work)), stopped_error);
    CHECK(static_cast<bool>(work));  // NOLINT(bugprone-use-after-move)
  });
}

TEST_CASE("a callable may call the scheduler while it is being constructed in the timer") {
  struct schedules_when_copied {
    explicit schedules_when_copied(manual_timer& t) : time(&t) {}
    schedules_when_copied(const schedules_when_copied& other) : time(other.time) {
      time->schedule_after(1ms, [] {});
      time->cancel(time->schedule_after(1ms, [] {}));
    }
    schedules_when_copied& operator=(const schedules_when_copied&) = delete;
    void operator()() const {}
    manual_timer* time;
  };
  manual_timer time;
  const schedules_when_copied work(time);
  time.schedule_after(1ms, work);
  CHECK(time.pending() == 2);
  CHECK(time.advance(1ms) == 2);
}

TEST_CASE("a refused callable may be the last owner of the scheduler") {
  struct owner {
    explicit owner(std::shared_ptr<manual_timer> t) : time(std::move(t)) {}
    owner(owner&& other) noexcept : time(std::move(other.time)) { time->stop(); }
    owner& operator=(owner&&) = delete;
    void operator()() const {}
    std::shared_ptr<manual_timer> time;
  };
  auto time = std::make_shared<manual_timer>();
  const std::weak_ptr<manual_timer> watched = time;
  manual_timer& used = *time;
  CHECK_THROWS_AS(used.schedule_after(1ms, owner(std::move(time))), stopped_error);
  CHECK(watched.expired());
}

// Otherwise `{}` as a third argument would be taken for a call site.
static_assert(!std::is_default_constructible_v<rondo::detail::kept_call_site>);
static_assert(!std::is_constructible_v<rondo::detail::kept_call_site, call_site>);

}  // namespace scheduler_callable_in_place
