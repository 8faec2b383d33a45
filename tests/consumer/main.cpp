// A small program that uses the main parts of Rondo. Exits with status 0 if all of them work. Compiles with the
// strictest warnings, and without exceptions and RTTI.
#include <chrono>
#include <coroutine>
#include <future>
#include <iostream>
#include <string>

#include <rondo/coroutine.hpp>
#include <rondo/errors.hpp>
#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer.hpp>
#include <rondo/wheel.hpp>

namespace {

using namespace std::chrono_literals;

bool timer_works() {
  std::promise<rondo::firing> fired;
  rondo::timer timer({.tick = 100us});
  const auto never_runs = timer.schedule_after(1h, [] {});
  timer.schedule_after(2ms, [&fired](const rondo::firing& f) { fired.set_value(f); });
  return fired.get_future().get().lateness >= 0ns &&
         timer.cancel(never_runs) == rondo::cancel_result::cancelled && timer.stop().empty();
}

bool recurrences_work() {
  int runs = 0;
  rondo::manual_timer time;
  time.schedule(rondo::every(10ms).times(3).on_missed(rondo::missed_runs::burst), [&runs] { ++runs; });
  time.advance(1s);
  return runs == 3 && time.stats().lateness.count() == 3;
}

bool keyed_timers_work() {
  std::string closed;
  rondo::manual_timer time;
  rondo::keyed_timers<std::string> timeouts(time);
  for (const char* session : {"Ada", "Ben"})
    timeouts.set_after(session, 30s, [&closed, session] { closed += session; });
  time.advance(20s);
  timeouts.reschedule_after("Ada", 30s);
  time.advance(20s);
  return closed == "Ben" && timeouts.contains("Ada");
}

bool wheel_works() {
  struct connection : rondo::wheel_node {
    bool idle = false;
  } first, second;
  rondo::wheel<connection> wheel(8);
  wheel.schedule(first, 3);
  wheel.schedule(second, 11);
  return wheel.advance(3, [](connection& c) { c.idle = true; }) == 1 && first.idle && !second.idle;
}

// Exceptions from a shared library can be caught by their type.
bool errors_work() {
#ifdef __cpp_exceptions
  rondo::manual_timer time;
  time.stop();
  try {
    time.schedule_after(1s, [] {});
    return false;
  } catch (const rondo::stopped_error&) {
  }
#endif
  return true;
}

struct routine {
  struct promise_type {
    routine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };

  std::coroutine_handle<> coroutine;
};

routine nap(rondo::scheduler& time, bool& awake) {
  co_await rondo::sleep_for(time, 8h);
  awake = true;
}

bool coroutines_work() {
  bool awake = false;
  rondo::manual_timer time;
  nap(time, awake).coroutine.resume();
  time.advance(7h);
  const bool asleep = !awake;
  time.advance(1h);
  return asleep && awake;
}

}  // namespace

int main() {
  const struct {
    const char* what;
    bool (*works)();
  } parts[] = {
      {"timer", timer_works}, {"recurrences", recurrences_work}, {"keyed timers", keyed_timers_work},
      {"wheel", wheel_works}, {"errors", errors_work},           {"coroutines", coroutines_work},
  };
  bool all = true;
  for (const auto& part : parts) {
    const bool works = part.works();
    std::cout << part.what << (works ? " work\n" : " DO NOT WORK\n");
    all = all && works;
  }
  return all ? 0 : 1;
}
