// cancel_and_wait() and due() of keyed timers, on virtual time.
#include <rondo/keyed_timers.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace on_top_keyed_timers_waits {

using namespace rondo;
using namespace rondo::test;

using by_name = keyed_timers<std::string>;

TEST_CASE("cancel_and_wait() of a waiting timer destroys its callable and forgets the key") {
  manual_timer time;
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  timers.set_after("a", 1ms, [token] { FAIL("it ran"); });
  timers.set("b", every(1ms), [token] { FAIL("it ran"); });
  timers.set_after("c", 1ms, [] {});
  CHECK(timers.cancel_and_wait("a") == cancel_result::cancelled);
  CHECK(timers.cancel_and_wait("b") == cancel_result::cancelled);
  CHECK(token.use_count() == 1);
  CHECK_FALSE(timers.contains("a"));
  CHECK(timers.size() == 1);
  CHECK(timers.cancel_and_wait("a") == cancel_result::gone);
  CHECK(timers.cancel_and_wait("never set") == cancel_result::gone);
  CHECK(time.advance(1s) == 1);
  CHECK(timers.cancel_and_wait("c") == cancel_result::gone);
  CHECK(time.stats().cancelled == 2);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("cancel_and_wait() of a waiting timer destroys the key") {
  manual_timer time;
  keyed_timers<std::shared_ptr<int>> timers(time);
  const auto key = std::make_shared<int>(0);
  timers.set_after(key, 1h, [] {});
  CHECK(key.use_count() == 2);
  CHECK(timers.cancel_and_wait(key) == cancel_result::cancelled);
  CHECK(key.use_count() == 1);
}

TEST_CASE("cancel_and_wait() takes back a job that an executor has not started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  by_name timers(time);
  const auto token = std::make_shared<int>(0);
  timers.set_after("a", 1ms, [token] { FAIL("it ran"); });
  time.advance(1ms);
  REQUIRE(jobs.size() == 1);
  CHECK(timers.cancel_and_wait("a") == cancel_result::cancelled);
  CHECK(token.use_count() == 1);
  jobs[0]();
}

TEST_CASE("cancel_and_wait() from inside a task of the key does not wait") {
  manual_timer time;
  by_name timers(time);
  journal ran;
  std::optional<cancel_result> result;
  const auto cancels = [&] { result = timers.cancel_and_wait("a"); };
  SUBCASE("a one-shot") {
    timers.set_after("a", 1ms, cancels);
    time.advance(1ms);
    CHECK(result == cancel_result::running);
  }
  SUBCASE("a recurring task, which ends with this run") {
    timers.set("a", every(1ms), cancels);
    CHECK(time.advance(5ms) == 1);
    CHECK(result == cancel_result::running);
  }
  SUBCASE("a replaced task, which cancels the timer that has replaced it") {
    timers.set_after("a", 1ms, [&] {
      timers.set_after("a", 1ms, ran.noting("new"));
      cancels();
    });
    time.advance(5ms);
    CHECK(result == cancel_result::cancelled);
  }
  SUBCASE("the destructor of its callable") {
    timers.set_after("a", 1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) { cancels(); })] {});
    time.advance(1ms);
    CHECK(result == cancel_result::running);
  }
  SUBCASE("the destructor of a replaced callable") {
    timers.set_after("a", 1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) { cancels(); })] {});
    timers.set_after("a", 1ms, ran.noting("new"));
    CHECK(result == cancel_result::cancelled);
    time.advance(1ms);
  }
  SUBCASE("the destructor of a cancelled callable") {
    timers.set_after("a", 1ms, [held = std::shared_ptr<void>(nullptr, [&](void*) { cancels(); })] {});
    CHECK(timers.cancel_and_wait("a") == cancel_result::cancelled);
    CHECK(result == cancel_result::gone);
  }
  CHECK(ran.take() == "");
  CHECK_FALSE(timers.contains("a"));
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("cancel_and_wait() of keyed timers works when the scheduler is stopped or gone") {
  std::optional<manual_timer> time(std::in_place);
  by_name timers(*time);
  timers.set_after("a", 1ms, [] {});
  const auto list = time->stop();
  CHECK(timers.cancel_and_wait("a") == cancel_result::gone);
  CHECK(timers.due("a") == std::nullopt);
  time.reset();
  CHECK(timers.cancel_and_wait("a") == cancel_result::gone);
  CHECK(timers.due("a") == std::nullopt);
}

TEST_CASE("cancel_and_wait() needs no memory" * doctest::skip(!failing_new::available)) {
  manual_timer time;
  keyed_timers<int> timers(time);
  timers.set_after(1, 1h, [] {});
  timers.set(2, every(1h), [] {});
  cancel_result first{}, second{}, third{};
  {
    const failing_new failing;
    first = timers.cancel_and_wait(1);
    second = timers.cancel_and_wait(2);
    third = timers.cancel_and_wait(3);
  }
  CHECK(first == cancel_result::cancelled);
  CHECK(second == cancel_result::cancelled);
  CHECK(third == cancel_result::gone);
  CHECK(time.pending() == 0);
}

TEST_CASE("due() is the exact deadline of the key's timer") {
  manual_timer time;
  by_name timers(time);
  CHECK(timers.due("a") == std::nullopt);
  timers.set_after("a", 1'300us, [] {});
  CHECK(timers.due("a") == at(1'300us));
  timers.set_at("a", at(7'700us), [] {});
  CHECK(timers.due("a") == at(7'700us));
  timers.reschedule_after("a", 2'500us);
  CHECK(timers.due("a") == at(2'500us));
  CHECK(timers.due("b") == std::nullopt);
  timers.set_at("b", time_point::max(), [] {});
  CHECK(timers.due("b") == time_point::max());
  timers.set("c", every(1ms), [&] { CHECK(timers.due("c") == at(2ms)); });
  CHECK(timers.due("c") == at(1ms));
  time.advance(1ms);
  timers.cancel("c");
  CHECK(timers.due("c") == std::nullopt);
  time.advance(1s);
  CHECK(timers.due("a") == std::nullopt);
}

TEST_CASE("inside its own task, a key has no due() until the task sets the key again") {
  manual_timer time;
  by_name timers(time);
  std::optional<time_point> own = at(9ms), next;
  timers.set_after("a", 1ms, [&] {
    own = timers.due("a");
    timers.set_after("a", 3ms, [] {});
    next = timers.due("a");
  });
  time.advance(1ms);
  CHECK(own == std::nullopt);
  CHECK(next == at(4ms));
}

}  // namespace on_top_keyed_timers_waits
