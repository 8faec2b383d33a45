// Asio coroutines that wait, on virtual time.
#include "adapters/asio_results.hpp"

#include <memory>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

// The Asio of Boost 1.74 supports them only with g++.
#ifdef BOOST_ASIO_HAS_CO_AWAIT

namespace adapters_asio_coroutine {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

asio::awaitable<void> nap(scheduler& s, rondo::duration d, journal& notes) {
  try {
    co_await async_wait_for(s, d, asio::use_awaitable);
    notes.add("ok");
  } catch (const boost::system::system_error& e) {
    notes.add(name_of(e.code()));
  }
}

TEST_CASE("use_awaitable: a coroutine resumes at its deadlines, in its context") {
  asio::io_context io;
  manual_timer time;
  std::vector<rondo::time_point> woken;
  asio::co_spawn(
      io,
      [](manual_timer& t, std::vector<rondo::time_point>& w) -> asio::awaitable<void> {
        for (int i = 0; i != 3; ++i) {
          co_await async_wait_for(t, 1s, asio::use_awaitable);
          w.push_back(t.now());
        }
        co_await async_wait_until(t, at(1min), asio::use_awaitable);
        w.push_back(t.now());
      }(time, woken),
      asio::detached);
  for (int i = 0; i != 5; ++i) {
    run_ready(io);
    time.advance_to_next();
  }
  run_ready(io);
  CHECK(woken == std::vector{at(1s), at(2s), at(3s), at(1min)});
  CHECK_FALSE(has_work(io));
}

TEST_CASE("use_awaitable: the wait begins with the co_await") {
  asio::io_context io;
  journal notes;
  manual_timer time;
  asio::co_spawn(io, nap(time, 1s, notes), asio::detached);
  time.advance(1h);
  run_ready(io);
  CHECK(time.next_due() == at(1h + 1s));
  time.advance(1s);
  run_ready(io);
  CHECK(notes.take() == "ok");
}

TEST_CASE("use_awaitable: the co_await throws if the wait is ended early or refused") {
  asio::io_context io;
  journal notes;
  manual_timer time(options{.max_pending = 1});
  asio::co_spawn(io, nap(time, 1s, notes), asio::detached);
  run_ready(io);
  asio::co_spawn(io, nap(time, 1s, notes), asio::detached);
  run_ready(io);
  CHECK(notes.take() == error_code(asio::error::no_buffer_space).message());
  const auto list = time.stop();
  asio::co_spawn(io, nap(time, 1s, notes), asio::detached);
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

TEST_CASE("use_awaitable: waiting coroutines are destroyed with their context") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  {
    asio::io_context io;
    asio::co_spawn(
        io,
        [](manual_timer& t, std::shared_ptr<int>) -> asio::awaitable<void> {
          co_await async_wait_for(t, 1s, asio::use_awaitable);
        }(time, token),
        asio::detached);
    run_ready(io);
    CHECK(token.use_count() == 2);
    time.stop();
  }
  CHECK(token.use_count() == 1);
}

}  // namespace adapters_asio_coroutine

#endif
