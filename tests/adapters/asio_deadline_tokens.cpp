// Deadlines around each kind of completion token, on virtual time. Boost 1.77 and later.
#include "adapters/asio_deadlines.hpp"

#include <cstddef>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <tuple>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

namespace adapters_asio_deadline_tokens {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

TEST_CASE_FIXTURE(line, "use_future: an operation of one step and a composed one") {
  std::future<std::size_t> first =
      ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, asio::use_future));
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(first.get() == 2);
  CHECK(time.pending() == 0);

  std::future<std::size_t> second =
      asio::async_read(ours, asio::buffer(input), cancel_after(time, 1s, asio::use_future));
  say("hi");
  CHECK(has_work(io));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK_THROWS_WITH_AS(static_cast<void>(second.get()), doctest::Contains("canceled"),
                       boost::system::system_error);
}

TEST_CASE_FIXTURE(line, "deferred: the time counts from the moment when the operation begins") {
  auto read_some = ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, asio::deferred));
  time.advance(1h);
  CHECK(time.pending() == 0);
  std::move(read_some)(noting());
  CHECK(time.next_due() == at(1h + 1s));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");

  // The other way round: the operation is deferred, and gets its deadline when it begins.
  ours.async_read_some(asio::buffer(input), asio::deferred)(cancel_after(time, 1s, noting()));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

TEST_CASE_FIXTURE(line, "detached, and a token that is kept and used twice") {
  const auto token = cancel_after(time, 1s, asio::detached);
  asio::steady_timer timer(io, 1h);
  timer.async_wait(token);
  timer.async_wait(token);
  CHECK(time.pending() == 2);
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "as_tuple around a handler") {
  const auto handler = [this](std::tuple<error_code, std::size_t> ended) {
    notes.add(read(std::get<0>(ended), std::get<1>(ended)));
  };
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, asio::as_tuple(handler)));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
  ours.async_read_some(asio::buffer(input),
                       asio::as_tuple(cancel_after(time, 1s, asio::bind_executor(io, handler))));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT

/// Coroutines that read from `ours` with a deadline of a second, and note how that ended.
struct reading : line {
  template <class Token>
  auto with(Token token) {
    return cancel_after(time, 1s, token);
  }
  void spawn(asio::awaitable<void> work) { asio::co_spawn(io, std::move(work), asio::detached); }

  asio::awaitable<void> read_once() {
    try {
      const std::size_t n = co_await ours.async_read_some(asio::buffer(input), with(asio::use_awaitable));
      notes.add("ok " + std::to_string(n));
    } catch (const boost::system::system_error& e) {
      notes.add(name_of(e.code()));
    }
  }
  asio::awaitable<void> read_tuple() {
    const auto [e, n] =
        co_await ours.async_read_some(asio::buffer(input), with(asio::as_tuple(asio::use_awaitable)));
    notes.add(read(e, n));
  }
  asio::awaitable<void> read_all() {
    const auto [e, n] =
        co_await asio::async_read(ours, asio::buffer(input), with(asio::as_tuple(asio::use_awaitable)));
    notes.add(read(e, n));
  }
  asio::awaitable<void> read_deferred() {
    const std::size_t n =
        co_await ours.async_read_some(asio::buffer(input), with(asio::deferred))(asio::use_awaitable);
    notes.add("ok " + std::to_string(n));
  }
};

TEST_CASE_FIXTURE(reading, "use_awaitable: the result, or an exception") {
  spawn(read_once());
  run_ready(io);
  CHECK(time.pending() == 1);
  SUBCASE("in time") {
    say("hi");
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "ok 2");
  }
  SUBCASE("too late") {
    time.advance(1s);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted");
  }
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(reading,
                  "as_tuple(use_awaitable) and deferred; the coroutine goes on after a cancellation") {
  spawn([](reading& r) -> asio::awaitable<void> {
    co_await r.read_tuple();
    co_await r.read_all();
    co_await r.read_deferred();
  }(*this));
  run_ready(io);
  time.advance(1s);
  run_ready(io);
  CHECK(notes.take() == "aborted 0");
  say("hey");
  run_ready(io);
  time.advance(1s);
  run_ready(io);
  CHECK(notes.take() == "aborted 3");
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok 2");
}

TEST_CASE_FIXTURE(reading,
                  "inside ||: the first operation that ends cancels the other, and no timer is left") {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer timer(io, 1h);
  std::optional<std::size_t> winner;
  spawn([](reading& r, asio::steady_timer& t, std::optional<std::size_t>& w) -> asio::awaitable<void> {
    const auto token = asio::as_tuple(asio::use_awaitable);
    const auto ended = co_await (r.ours.async_read_some(asio::buffer(r.input), r.with(token)) ||
                                 t.async_wait(cancel_after(r.time, 500ms, token)));
    w = ended.index();
  }(*this, timer, winner));
  run_ready(io);
  CHECK(time.pending() == 2);
  SUBCASE("a result") {
    say("hi");
    CHECK_FALSE(has_work(io));
    CHECK(winner == 0u);
  }
  SUBCASE("a deadline") {
    time.advance(500ms);
    CHECK_FALSE(has_work(io));
    CHECK(winner == 1u);
  }
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(reading, "co_spawn: a deadline for a whole coroutine") {
  asio::co_spawn(
      io,
      [this]() -> asio::awaitable<void> {
        for (;;) co_await read_tuple();
      },
      cancel_after(time, 1500ms, [this](std::exception_ptr e) { notes.add(e ? "failed" : "done"); }));
  run_ready(io);
  time.advance(1s);
  run_ready(io);
  CHECK(notes.take() == "aborted 0");
  CHECK(time.pending() == 2);
  time.advance(500ms);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0 failed");  // the next co_await of a cancelled coroutine throws
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(reading, "on a strand") {
  auto strand = asio::make_strand(io);
  asio::co_spawn(strand, read_all(), asio::detached);
  run_ready(io);
  say("hi");
  run_ready(io);
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 2");
}

#endif

}  // namespace adapters_asio_deadline_tokens
