// Scopes and keyed timers ask the runs in progress to stop.
#include <version>
#ifdef __cpp_lib_jthread
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/keyed_timers.hpp>
#include <rondo/timer_scope.hpp>

#include "scheduler/virtual_time.hpp"
#include "threads/patience.hpp"

namespace on_top_interrupt {

using namespace rondo;
using namespace rondo::test;

TEST_CASE("the end of a scope asks, and so do its calls") {
  manual_timer time;
  std::optional<timer_scope> scope(time);
  bool before = true, after = false;
  scope->schedule_every(1s, [&](const firing& f, std::stop_token token) {
    before = token.stop_requested();
    SUBCASE("the destructor") { scope.reset(); }
    SUBCASE("cancel") { scope->cancel(f.id); }
    SUBCASE("cancel_and_wait") { scope->cancel_and_wait(f.id); }
    SUBCASE("cancel_all") { scope->cancel_all(); }
    after = token.stop_requested();
  });
  time.advance(1s);
  CHECK_FALSE(before);
  CHECK(after);
}

TEST_CASE("the calls that end a key's timer ask its run") {
  manual_timer time;
  std::optional<keyed_timers<int>> keys(time);
  bool before = true, after = false;
  const auto work = [&](std::stop_token token) {
    before = token.stop_requested();
    SUBCASE("cancel") { CHECK(keys->cancel(1) == cancel_result::running); }
    SUBCASE("cancel_and_wait") { CHECK(keys->cancel_and_wait(1) == cancel_result::running); }
    SUBCASE("clear") { keys->clear(); }
    SUBCASE("the destructor") { keys.reset(); }
    after = token.stop_requested();
  };
  keys->set_after(1, 1s, work);
  time.advance(1s);
  CHECK_FALSE(before);
  CHECK(after);
}

/// Calls `act` on another thread, while a run of key 1 is in progress, and says whether that run is asked.
template <class Act>
bool asked_from_another_thread(const recurrence& when, Act&& act) {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  keyed_timers<int> keys(time);
  bool asked = false;
  keys.set(1, when, [&](std::stop_token token) {
    std::thread([&] { act(keys); }).join();
    asked = token.stop_requested();
  });
  time.advance(1s);
  std::exchange(jobs.at(0), job())();
  return asked;
}

TEST_CASE("setting a key again asks the run in progress, whether it is the timer's last or not") {
  const auto set = [](keyed_timers<int>& keys) { keys.set_after(1, 1h, doing_nothing()); };
  CHECK(asked_from_another_thread(every(1s), set));
  CHECK(asked_from_another_thread(every(1s).times(1), set));
  CHECK_FALSE(asked_from_another_thread(
      every(1s), [](keyed_timers<int>& keys) { keys.set_after(2, 1h, doing_nothing()); }));
  CHECK_FALSE(
      asked_from_another_thread(every(1s), [](keyed_timers<int>& keys) { keys.reschedule_after(1, 1h); }));
  const auto try_to_set = [](keyed_timers<int>& keys) { keys.try_set_after(1, 1h, doing_nothing()); };
  CHECK_FALSE(asked_from_another_thread(every(1s), try_to_set));
  CHECK_FALSE(asked_from_another_thread(every(1s).times(1), try_to_set));
}

TEST_CASE("clear() and the destructor ask all replaced runs in progress before they wait for one") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  std::optional<keyed_timers<int>> keys(std::in_place, time);
  std::atomic<int> begun{0}, asked{0};
  const auto until = [](auto&& done) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  const auto work = [&](std::stop_token token) {
    ++begun;
    until([&] { return token.stop_requested(); });
    if (token.stop_requested()) ++asked;
    until([&] { return asked == 2; });
  };
  std::vector<std::thread> runs;
  for (int i = 0; i != 2; ++i) {
    CHECK(keys->try_set_after(1, 0s, work));
    time.advance(1ms);
    runs.emplace_back(std::move(jobs.back()));
    until([&] { return begun == i + 1; });
  }
  CHECK(keys->try_set_after(1, 1h, doing_nothing()));
  SUBCASE("clear()") {
    keys->clear();
    for (std::thread& run : runs) run.join();
  }
  SUBCASE("the destructor") {
    keys.reset();
    for (std::thread& run : runs) run.join();
  }
  CHECK(asked == 2);
}

TEST_CASE("a task that sets its own key again is not asked") {
  manual_timer time;
  keyed_timers<int> keys(time);
  bool asked = true;
  keys.set_after(1, 1s, [&](std::stop_token token) {
    keys.set_after(1, 1h, doing_nothing());
    asked = token.stop_requested();
  });
  time.advance(1s);
  CHECK_FALSE(asked);
}

TEST_CASE("stop callbacks may use and destroy the scope or the keyed timers whose call asks") {
  manual_timer time;
  auto scope = std::make_unique<timer_scope>(time);
  auto keys = std::make_unique<keyed_timers<int>>(time);
  std::function<void(timer_id)> ask;
  const auto destroy_scope = [&] { scope.reset(); };
  const auto destroy_keys = [&] { keys.reset(); };
  std::function<void()> asked = destroy_keys;
  bool over = false;
  const auto work = [&](const firing& f, std::stop_token token) {
    const std::stop_callback when_asked(token, [&] { asked(); });
    ask(f.id);
    over = true;
  };
  SUBCASE("scope: cancel") {
    ask = [&](timer_id id) { scope->cancel(id); };
  }
  SUBCASE("scope: cancel_and_wait") {
    ask = [&](timer_id id) { scope->cancel_and_wait(id); };
  }
  SUBCASE("scope: cancel_all") {
    ask = [&](timer_id) { scope->cancel_all(); };
  }
  if (ask) {
    asked = destroy_scope;
    scope->schedule_every(1s, work);
  }
  SUBCASE("keys: cancel") {
    ask = [&](timer_id) { keys->cancel(1); };
  }
  SUBCASE("keys: cancel_and_wait") {
    ask = [&](timer_id) { keys->cancel_and_wait(1); };
  }
  SUBCASE("keys: clear") {
    ask = [&](timer_id) { keys->clear(); };
  }
  SUBCASE("keys: set_after") {
    // On another thread, because a run that sets its own key is not asked.
    ask = [&](timer_id) { std::thread([&] { keys->set_after(1, 1h, doing_nothing()); }).join(); };
    asked = [&] {
      keys->set_after(1, 2h, doing_nothing());
      CHECK(keys->cancel_and_wait(1) == cancel_result::cancelled);
      keys.reset();
    };
  }
  if (scope->pending() == 0) keys->set(1, every(1s), work);
  time.advance(1s);
  CHECK(over);
  CHECK((scope == nullptr || keys == nullptr));
  CHECK(time.pending() == 0);
}

}  // namespace on_top_interrupt
#endif
