// Coroutines that sleep until they are asked to stop, on virtual time.
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>

#include "on_top/coroutines.hpp"
#include "scheduler/virtual_time.hpp"

#include <rondo/polled_timer.hpp>

#ifdef __cpp_lib_jthread
#include <stop_token>

namespace on_top_coroutine_stop {

using namespace rondo;
using namespace rondo::test;

/// Sleeps, and notes the result: "slept", "asked" or "dropped".
template <class When>
routine nap(scheduler& s, When d, std::stop_token token, journal& notes) {
  try {
    const bool slept = co_await sleep_for(s, d, std::move(token));
    notes.add(slept ? "slept" : "asked");
  } catch (const stopped_error&) {
    notes.add("dropped");
  }
}

TEST_CASE("a coroutine that is not asked to stop sleeps to the end; asking later does nothing") {
  manual_timer time;
  journal notes;
  std::stop_source source;
  const auto with_source = nap(time, 1ms, source.get_token(), notes);
  const auto without = nap(time, 2ms, std::stop_token{}, notes);
  time.advance(1s);
  CHECK(notes.take() == "slept slept");
  source.request_stop();
  CHECK(notes.take() == "");
  CHECK(with_source.done());
  CHECK(without.done());
}

TEST_CASE(
    "a coroutine that is asked to stop resumes at once, inside request_stop(), and its timer is cancelled") {
  manual_timer time;
  journal notes;
  std::stop_source source;
  const auto soon = nap(time, 1ms, source.get_token(), notes);
  const auto never = nap(time, duration::max(), source.get_token(), notes);
  source.request_stop();
  CHECK(notes.take() == "asked asked");
  CHECK(soon.done());
  CHECK(never.done());
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 2);
  CHECK(time.advance(1h) == 0);
}

TEST_CASE("a sleep whose stop was requested before does not begin, not even on a stopped scheduler") {
  manual_timer time;
  journal notes;
  std::stop_source source;
  source.request_stop();
  const auto early = nap(time, 1ms, source.get_token(), notes);
  CHECK(notes.take() == "asked");
  time.stop();
  const auto late = nap(time, 1ms, source.get_token(), notes);
  CHECK(notes.take() == "asked");
  CHECK(time.stats().scheduled == 0);
}

TEST_CASE("a coroutine that is asked just before it suspends does not suspend, and nothing is scheduled") {
  manual_timer time;
  std::stop_source source;
  auto sleeping = sleep_for(time, 1ms, source.get_token());
  REQUIRE_FALSE(sleeping.await_ready());
  source.request_stop();
  CHECK_FALSE(sleeping.await_suspend(std::noop_coroutine()));
  CHECK_FALSE(sleeping.await_resume());
  CHECK(time.stats().scheduled == 0);
}

TEST_CASE("sleep_until() can be asked to stop as well") {
  manual_timer time;
  std::stop_source source;
  const auto sleeper = [](manual_timer& t, std::stop_token token) -> routine {
    const bool first = co_await sleep_until(t, at(1ms), token);
    CHECK(first);
    const bool second = co_await sleep_until(t, at(1h), token);
    CHECK_FALSE(second);
    const bool third = co_await sleep_until(t, at(2h), token);
    CHECK_FALSE(third);
  }(time, source.get_token());
  time.advance(1ms);
  source.request_stop();
  CHECK(sleeper.done());
  CHECK(time.stats().scheduled == 2);
}

TEST_CASE("a task may request a stop before or after a sleeper that is due at the same moment") {
  manual_timer time;
  journal notes;
  std::stop_source source;
  const auto before = nap(time, 1ms, source.get_token(), notes);
  time.schedule_after(1ms, [&] { source.request_stop(); });
  const auto after = nap(time, 1ms, source.get_token(), notes);
  time.advance(1ms);
  CHECK(notes.take() == "slept asked");
}

TEST_CASE("a coroutine that has slept may ask itself to stop, and then sleeps no more") {
  manual_timer time;
  std::stop_source source;
  const auto sleeper = [](manual_timer& t, std::stop_source& s) -> routine {
    const bool first = co_await sleep_for(t, 1ms, s.get_token());
    CHECK(first);
    s.request_stop();
    const bool second = co_await sleep_for(t, 1ms, s.get_token());
    CHECK_FALSE(second);
  }(time, source);
  time.advance(1s);
  CHECK(sleeper.done());
}

TEST_CASE("a stop request takes back a job that an executor has not started") {
  std::vector<job> jobs;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  journal notes;
  std::stop_source source;
  const auto sleeper = nap(time, 1ms, source.get_token(), notes);
  time.advance(1ms);
  source.request_stop();
  CHECK(notes.take() == "asked");
  for (job& j : jobs) j();
  CHECK(notes.take() == "");
  CHECK(time.stats().cancelled == 1);
}

TEST_CASE("a coroutine that is asked to stop may end, and destroy the scheduler and the source") {
  auto time = std::make_unique<manual_timer>();
  auto source = std::make_unique<std::stop_source>();
  journal notes;
  auto sleeper = [](std::unique_ptr<manual_timer>& t, std::unique_ptr<std::stop_source>& s,
                    journal& n) -> detached {
    const bool slept = co_await sleep_for(*t, 1ms, s->get_token());
    t.reset();
    s.reset();
    n.add(slept ? "slept" : "asked");
  }(time, source, notes);
  sleeper.start();
  std::stop_source(*source).request_stop();
  CHECK(notes.take() == "asked");
  CHECK(time == nullptr);
}

TEST_CASE("destroying a suspended coroutine removes it from the stop source") {
  manual_timer time;
  journal notes;
  std::stop_source source;
  auto sleeper = nap(time, 1ms, source.get_token(), notes);
  sleeper.destroy();
  CHECK(time.stats().cancelled == 1);
  source.request_stop();
  time.advance(1h);
  CHECK(notes.take() == "");
}

TEST_CASE("a sleep that is dropped reports that, and a later stop request does nothing") {
  journal notes;
  std::stop_source source;
  auto time = std::make_unique<manual_timer>();
  const auto sleeper = nap(*time, 1ms, source.get_token(), notes);
  time.reset();
  CHECK(notes.take() == "dropped");
  source.request_stop();
  CHECK(notes.take() == "");
}

TEST_CASE("a list from stop() does not touch a coroutine that was asked to stop") {
  journal notes;
  std::stop_source source;
  auto time = std::make_unique<manual_timer>();
  const auto a = nap(*time, 1ms, source.get_token(), notes);
  const auto b = nap(*time, 2ms, source.get_token(), notes);
  std::vector<unfired> list = time->stop();
  time.reset();  // the request no longer calls the scheduler
  source.request_stop();
  CHECK(notes.take() == "asked asked");
  REQUIRE(list.size() == 2);
  list[0].work();
  list.clear();
  CHECK(notes.take() == "");
}

// on_earlier is called inside the scheduling call, before the coroutine has completely suspended.

TEST_CASE("a coroutine that on_earlier asks to stop resumes and leaves no timer") {
  polled_timer polled;
  journal notes;
  std::stop_source source;
  polled.on_earlier([&] { source.request_stop(); });
  const auto sleeper = nap(polled, 1h, source.get_token(), notes);
  CHECK(notes.take() == "asked");
  CHECK(polled.pending() == 0);
  CHECK(polled.stats().cancelled == 1);
}

TEST_CASE("a coroutine that is dropped inside on_earlier resumes once") {
  polled_timer polled;
  journal notes;
  polled.on_earlier([&] { polled.stop(); });
  const auto sleeper = nap(polled, 1h, std::stop_token{}, notes);
  CHECK(notes.take() == "dropped");
  CHECK(sleeper.done());
}

TEST_CASE(
    "a coroutine handed back by stop() in on_earlier may be asked to stop after the scheduler is gone") {
  journal notes;
  std::stop_source source;
  std::vector<unfired> list;
  auto polled = std::make_unique<polled_timer>();
  polled->on_earlier([&] { list = polled->stop(); });
  const auto sleeper = nap(*polled, 1h, source.get_token(), notes);
  REQUIRE(list.size() == 1);
  polled.reset();
  source.request_stop();
  CHECK(notes.take() == "asked");
}

TEST_CASE("a coroutine whose task is run by hand in on_earlier has slept, once") {
  polled_timer polled;
  journal notes;
  polled.on_earlier([&] {
    for (unfired& u : polled.stop()) u.work();
  });
  const auto sleeper = nap(polled, 1h, std::stop_token{}, notes);
  CHECK(notes.take() == "slept");
  CHECK(sleeper.done());
}

TEST_CASE("a coroutine that on_earlier destroys does not resume, and leaves no timer") {
  polled_timer polled;
  std::stop_source source;
  std::optional sleeping(sleep_for(polled, 1h, source.get_token()));  // as in the frame of a coroutine
  polled.on_earlier([&] { sleeping.reset(); });
  CHECK(sleeping->await_suspend(std::noop_coroutine()));  // false would resume a destroyed coroutine
  CHECK_FALSE(sleeping.has_value());
  CHECK(polled.pending() == 0);
  CHECK(polled.stats().cancelled == 1);
}

TEST_CASE("a sleep that cannot be scheduled throws, and may then be asked to stop") {
  manual_timer time;
  time.stop();
  std::stop_source source;
  const auto sleeper = [](manual_timer& t, std::stop_source& s) -> routine {
    auto sleeping = sleep_for(t, 1ms, s.get_token());
    bool refused = false;
    try {
      co_await sleeping;
    } catch (const stopped_error&) {
      refused = true;
    }
    CHECK(refused);
    s.request_stop();
    const bool slept = co_await sleeping;
    CHECK_FALSE(slept);
  }(time, source);
  CHECK(sleeper.done());
  sleeper.rethrow();
}

}  // namespace on_top_coroutine_stop

#endif
