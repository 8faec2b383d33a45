// Waits whose task is destroyed without running, and contexts that end before their waits.
#include "adapters/asio_results.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <rondo/polled_timer.hpp>

namespace adapters_asio_ends {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

TEST_CASE(
    "a task that stop() handed back aborts its wait when destroyed, and ends it normally when run by hand") {
  asio::io_context io;
  journal notes;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  async_wait_for(time, 2ms, [&](error_code e) { notes.add("second: " + name_of(e)); });
  std::vector<unfired> list = time.stop();
  REQUIRE(list.size() == 2);
  CHECK(has_work(io));
  CHECK(notes.take() == "");
  list[1].work();
  CHECK(notes.take() == "second: ok");
  list.clear();
  CHECK(notes.take() == "");  // posted, not called by the destructor
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted");
}

TEST_CASE("a wait that is dropped or refused inside its executor still posts its handler") {
  asio::io_context io;
  journal notes;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  asio::post(io, [&] {
    time.stop();
    async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
    CHECK(notes.take() == "");
  });
  run_ready(io);
  CHECK(notes.take() == "aborted aborted");
}

TEST_CASE("destroying the scheduler aborts its waits through their executors") {
  asio::io_context io;
  journal notes;
  {
    manual_timer time;
    for (int i = 0; i != 3; ++i) async_wait_for(time, i * 1ms, ending_on(io.get_executor(), notes));
    async_wait_for(time, rondo::duration::max(), ending_on(io.get_executor(), notes));
  }
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted aborted aborted aborted");
}

TEST_CASE("a wait whose job the executor drops is aborted") {
  std::vector<job> jobs;
  asio::io_context io;
  journal notes;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  for (int i = 0; i != 2; ++i) async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  time.advance(1ms);
  REQUIRE(jobs.size() == 2);
  jobs[0]();
  jobs.clear();
  CHECK(notes.take() == "");
  run_ready(io);
  CHECK(notes.take() == "ok aborted");
  CHECK(time.stats().rejected == 1);
}

TEST_CASE("drain() lets waits end normally") {
  manual_timer time;
  journal notes;
  async_wait_for(time, 1h, ending(notes));
  CHECK(time.drain(2h));
  CHECK(notes.take() == "ok");
}

TEST_CASE("destroying a context destroys its pending handlers without calling them") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  std::optional<asio::io_context> io(std::in_place);
  for (int i = 0; i != 2; ++i)
    async_wait_for(time, i * 1h, asio::bind_executor(*io, [token](error_code) { FAIL("called"); }));
  time.advance(0s);
  time.stop();
  CHECK(token.use_count() == 3);
  io.reset();
  CHECK(token.use_count() == 1);
}

TEST_CASE("a handler may destroy the scheduler") {
  auto time = std::make_unique<manual_timer>();
  journal notes;
  async_wait_for(*time, 1ms, [&](error_code) { time.reset(); });
  asio::io_context io;
  async_wait_for(*time, 2ms, ending_on(io.get_executor(), notes));
  time->advance(1ms);
  CHECK(time == nullptr);
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

// on_earlier is called inside the scheduling call, before the initiation is complete.

TEST_CASE("a wait that is dropped, or run by hand, while it begins ends once") {
  asio::io_context io;
  journal notes;
  polled_timer timer;
  std::string expected;
  SUBCASE("dropped") {
    timer.on_earlier([&] { timer.stop(); });
    expected = "aborted";
  }
  SUBCASE("run by hand") {
    timer.on_earlier([&] {
      for (unfired& u : timer.stop()) u.work();
    });
    expected = "ok";
  }
  async_wait_for(timer, 1h, ending_on(io.get_executor(), notes));
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == expected);
}

}  // namespace adapters_asio_ends
