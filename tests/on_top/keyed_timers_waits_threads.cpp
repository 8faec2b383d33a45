// cancel_and_wait() of keyed timers, on real threads.
#include <rondo/keyed_timers.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <rondo/manual_timer.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace on_top_keyed_timers_waits_threads {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("cancel_and_wait() waits for the task in progress and for the destruction of its callable") {
  for (const bool recurring : {false, true}) {
    CAPTURE(recurring);
    gate begun, may_end;
    int ended = 0;  // not atomic: a thread that has waited for the run may read it
    timer t;
    keyed_timers<int> timers(t);
    const auto token = std::make_shared<int>(0);
    auto work = [&, held = token] {  // not const, so that it can be moved
      begun.open();
      may_end.wait();
      ++ended;
    };
    if (recurring)
      timers.set(1, every(1us), std::move(work));
    else
      timers.set_after(1, 0s, std::move(work));
    REQUIRE(begun.wait());
    std::thread other([&] {  // a one-shot's task may end before the call
      while (timers.contains(1)) std::this_thread::yield();
      may_end.open();
    });
    const cancel_result result = timers.cancel_and_wait(1);
    CHECK(ended == 1);
    CHECK((result == cancel_result::running || (!recurring && result == cancel_result::gone)));
    CHECK(token.use_count() == 1);
    CHECK(timers.cancel(1) == cancel_result::gone);
    CHECK(timers.size() == 0);
    other.join();
  }
}

TEST_CASE("cancel_and_wait() waits for replaced tasks in progress, whatever became of the last one") {
  for (int what_follows = 0; what_follows != 3; ++what_follows) {
    CAPTURE(what_follows);
    gate begun, may_end, other_may_end;
    int first_ended = 0, second_ended = 0;
    pool workers(3);
    timer t(options{.run_on = workers.executor()});
    keyed_timers<int> timers(t);
    timers.set_after(2, 0s, [&] {
      begun.open();
      other_may_end.wait();  // cancel_and_wait() does not wait for tasks of other keys
    });
    const auto set = [&](int& ended) {
      timers.set_after(1, 0s, [&] {
        begun.open();
        may_end.wait();
        let_pass(1ms);
        ++ended;
      });
    };
    set(first_ended);
    REQUIRE(begun.wait(2));
    timers.set_after(2, 1h, [] {});
    set(second_ended);
    REQUIRE(begun.wait(3));
    for (int i = 10; i != 1000; ++i) timers.set_after(i, 1h, [] {});
    if (what_follows == 1) timers.set_after(1, 1h, [] {});
    if (what_follows == 2) {
      timers.set_after(1, 1h, [] {});
      timers.cancel(1);
    }
    std::thread other([&] { may_end.open(); });
    const cancel_result result = timers.cancel_and_wait(1);  // both tasks may just have ended
    CHECK((result == cancel_result::cancelled) == (what_follows == 1));
    CHECK(first_ended == 1);
    CHECK(second_ended == 1);
    CHECK(timers.cancel(1) == cancel_result::gone);
    CHECK(timers.contains(10));
    other.join();
    other_may_end.open();
  }
}

TEST_CASE("cancel_and_wait() neither cancels nor waits for a timer that is set for the key while it waits") {
  gate begun, may_end, cancelled;
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  keyed_timers<int> timers(t);
  timers.set_after(1, 0s, [&] {
    begun.open();
    may_end.wait();
  });
  REQUIRE(begun.wait());
  timers.set_after(1, 1h, [told = std::shared_ptr<void>(nullptr, [&](void*) { cancelled.open(); })] {});
  cancel_result result{};
  std::thread waiter([&] { result = timers.cancel_and_wait(1); });
  REQUIRE(cancelled.wait());
  timers.set_after(1, 1h, [] {});
  may_end.open();
  waiter.join();
  CHECK(result == cancel_result::cancelled);
  CHECK(timers.contains(1));
}

TEST_CASE("cancel_and_wait() does not wait for a task that began, and was replaced, after the call") {
  gate begun, first_may_end, second_may_end, third_may_end, waited;
  pool workers(3);
  timer t(options{.run_on = workers.executor()});
  keyed_timers<int> timers(t);
  const auto blocked_by = [&begun](gate& may_end) {
    return [&] {
      begun.open();
      may_end.wait();
    };
  };
  timers.set_after(1, 0s, blocked_by(first_may_end));
  REQUIRE(begun.wait(1));
  timers.set(1, every(1us), blocked_by(second_may_end));
  REQUIRE(begun.wait(2));
  std::thread waiter([&] {
    timers.cancel_and_wait(1);
    waited.open();
  });
  while (timers.contains(1)) std::this_thread::yield();
  first_may_end.open();
  timers.set_after(1, 0s, blocked_by(third_may_end));
  CHECK(begun.wait(3));
  timers.set_after(1, 1h, [] {});
  second_may_end.open();
  CHECK(waited.wait());
  third_may_end.open();
  waiter.join();
}

TEST_CASE("cancel_and_wait() from inside a task of another key waits") {
  gate begun, may_end, over;
  int ended = 0, seen = 0;  // not atomic: a thread that has waited for the run may read them
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  keyed_timers<int> timers(t);
  timers.set_after(1, 0s, [&] {
    begun.open();
    may_end.wait();
    let_pass(10ms);
    ++ended;
  });
  REQUIRE(begun.wait());
  timers.set_after(2, 0s, [&] {
    may_end.open();
    timers.cancel_and_wait(1);
    seen = ended;
    over.open();
  });
  REQUIRE(over.wait());
  CHECK(seen == 1);
}

TEST_CASE("tasks of one key that cancel it at the same time do not wait for each other") {
  gate begun, ended;
  bool below_another = false;
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  keyed_timers<int> timers(t);
  SUBCASE("") {}
  SUBCASE("even if they do so from a task of another scheduler that they drive") { below_another = true; }
  const auto work = [&] {
    manual_timer other;
    other.schedule_after(0s, [&] { timers.cancel_and_wait(1); });
    begun.open();
    begun.wait(2);
    if (below_another)
      other.advance(0s);
    else
      timers.cancel_and_wait(1);
    ended.open();
  };
  timers.set_after(1, 0s, work);
  REQUIRE(begun.wait());
  timers.set_after(1, 0s, work);
  REQUIRE(ended.wait(2));
}

TEST_CASE("after cancel_and_wait() no task of the key runs, at whatever moment it is called") {
  pool workers(3);
  timer t(options{.tick = 1us, .run_on = workers.executor()});
  keyed_timers<int> timers(t);
  std::atomic<bool> over{false};
  std::thread disturbing([&] {  // uses other keys
    for (int i = 0; !over; ++i) {
      timers.set_after(2 + i % 5, i % 7 * 1us, [] {});
      if (i % 3 == 0) timers.cancel_and_wait(2 + i % 4);
    }
  });
  std::atomic<int> begun{0}, in_progress{0};
  int round = 0;  // not atomic: tasks of the key read it, and it is written only after all have ended
  int wrong = 0, begun_before = 0;
  for (; round != 3000; ++round) {
    if (begun != begun_before) ++wrong;
    for (int k = 0; k <= round % 3; ++k) {  // replaced tasks may run at the same time
      timers.set_after(1, 0s, [&] {
        ++in_progress;
        ++begun;
        spin(static_cast<unsigned>(200 + round % 2));
        --in_progress;
      });
      spin(static_cast<unsigned>(round * 37 % 1500));
    }
    timers.cancel_and_wait(1);
    if (in_progress != 0 || timers.contains(1)) ++wrong;
    begun_before = begun;
  }
  CHECK(wrong == 0);
  over = true;
  disturbing.join();
  timers.clear();
  t.stop();
  CHECK(adds_up(t.stats()));
}

TEST_CASE("the scheduler may stop while cancel_and_wait() waits") {
  gate begun, may_end, cancelled;
  int ended = 0;
  pool workers(2);
  timer t(options{.run_on = workers.executor()});
  keyed_timers<int> timers(t);
  const auto work = [&] {
    begun.open();
    may_end.wait();
    ++ended;
  };
  timers.set_after(1, 0s, work);
  REQUIRE(begun.wait());
  timers.set_after(1, 1h, [told = std::shared_ptr<void>(nullptr, [&](void*) { cancelled.open(); })] {});
  std::thread waiter([&] {
    timers.cancel_and_wait(1);
    CHECK(ended == 1);
  });
  REQUIRE(cancelled.wait());
  std::thread stops([&] { CHECK(t.stop().empty()); });
  may_end.open();
  waiter.join();
  stops.join();
  CHECK(adds_up(t.stats()));
}

}  // namespace on_top_keyed_timers_waits_threads
