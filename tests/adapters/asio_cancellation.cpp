// Cancellation slots, on virtual time. Boost 1.77 and later.
#include "adapters/asio_results.hpp"

#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <rondo/polled_timer.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

namespace adapters_asio_cancellation {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;
using asio::cancellation_signal;
using asio::cancellation_type;

/// A handler in `io` that notes how the wait ended, and whose wait can be cancelled.
auto ending_on(asio::io_context& io, cancellation_signal& signal, journal& notes) {
  return asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, ending(notes)));
}

TEST_CASE("a wait that is cancelled is aborted through its executor, and its timer is gone") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  auto type = cancellation_type::none;
  SUBCASE("terminal") { type = cancellation_type::terminal; }
  SUBCASE("partial") { type = cancellation_type::partial; }
  SUBCASE("total") { type = cancellation_type::total; }
  SUBCASE("all") { type = cancellation_type::all; }
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  CHECK(has_work(io));
  signal.emit(type);
  CHECK(notes.take() == "");
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 1);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted");
  CHECK(time.advance(1h) == 0);
}

TEST_CASE("a wait that is cancelled while it begins leaves no timer behind") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  polled_timer timer;
  timer.on_earlier([&] { signal.emit(cancellation_type::terminal); });
  async_wait_for(timer, 1h, ending_on(io, signal, notes));
  CHECK(timer.pending() == 0);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted");
}

TEST_CASE("a wait that is cancelled inside its executor still posts its handler") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  asio::post(io, [&] {
    signal.emit(cancellation_type::total);
    CHECK(notes.take() == "");
  });
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

TEST_CASE("cancellation_type::none cancels nothing") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  signal.emit(cancellation_type::none);
  time.advance(1ms);
  run_ready(io);
  CHECK(notes.take() == "ok");
}

TEST_CASE("a wait can be cancelled until its handler is called") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  time.advance(1ms);
  CHECK(time.stats().completed == 1);
  signal.emit(cancellation_type::total);
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

TEST_CASE("cancelling twice is the same as cancelling once") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  for (int i = 0; i != 2; ++i) signal.emit(cancellation_type::total);
  run_ready(io);
  signal.emit(cancellation_type::total);
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

TEST_CASE("the slot is free when the handler is called, and the handler may use it to wait again") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  async_wait_for(time, 1ms,
                 asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, [&](error_code) {
                                                CHECK_FALSE(signal.slot().has_handler());
                                                async_wait_for(time, 1ms, ending_on(io, signal, notes));
                                              })));
  CHECK(signal.slot().has_handler());
  time.advance(1ms);
  run_ready(io);
  CHECK(signal.slot().has_handler());
  signal.emit(cancellation_type::total);
  run_ready(io);
  CHECK(notes.take() == "aborted");
  CHECK_FALSE(signal.slot().has_handler());
}

TEST_CASE("a wait whose job an executor has can be cancelled as well") {
  std::vector<job> jobs;
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  time.advance(1ms);
  signal.emit(cancellation_type::total);
  run_ready(io);
  CHECK(notes.take() == "aborted");
  jobs.front()();
  run_ready(io);
  CHECK(notes.take() == "");
  CHECK(time.stats().fired == 0);
}

TEST_CASE(
    "a wait cancelled while a list from stop() holds its task ends at once, even if the scheduler is gone") {
  asio::io_context io;
  journal notes;
  cancellation_signal first, second;
  auto time = std::make_unique<manual_timer>();
  const auto token = std::make_shared<int>(0);
  async_wait_for(*time, 1ms, ending_on(io, first, notes));
  async_wait_for(
      *time, 2ms,
      asio::bind_cancellation_slot(second.slot(), asio::bind_executor(io, [&notes, token](error_code e) {
                                     notes.add("second: " + name_of(e));
                                   })));
  std::vector<unfired> list = time->stop();
  first.emit(cancellation_type::total);
  time.reset();
  second.emit(cancellation_type::total);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted second: aborted");
  CHECK(token.use_count() == 1);  // the list keeps no part of the handler
  list[0].work();
  list.clear();
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "");
}

TEST_CASE("cancelling is allowed after the scheduler is gone, however its waits have ended") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  {
    manual_timer time;
    async_wait_for(time, 1ms, ending_on(io, signal, notes));
  }
  signal.emit(cancellation_type::total);  // the handler has been posted, but the slot is not free yet
  run_ready(io);
  CHECK(notes.take() == "aborted");
}

// on_earlier is called inside the scheduling call, before the initiation is complete.

TEST_CASE("a wait that is cancelled while it begins, or stopped then and cancelled later, is aborted once") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  std::vector<unfired> list;
  auto timer = std::make_unique<polled_timer>();
  SUBCASE("cancelled") {
    timer->on_earlier([&] { signal.emit(cancellation_type::total); });
    async_wait_for(*timer, 1ms, ending_on(io, signal, notes));
  }
  SUBCASE("stopped, and cancelled when the scheduler is gone") {
    timer->on_earlier([&] { list = timer->stop(); });
    async_wait_for(*timer, 1ms, ending_on(io, signal, notes));
    CHECK(list.size() == 1);
    timer.reset();
    signal.emit(cancellation_type::total);
  }
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted");
}

TEST_CASE("a handler may own its signal, and is destroyed with a context that never calls it") {
  const auto token = std::make_shared<int>(0);
  manual_timer time;
  {
    asio::io_context io;
    const auto signal = std::make_shared<cancellation_signal>();
    async_wait_for(time, 1ms,
                   asio::bind_cancellation_slot(signal->slot(),
                                                asio::bind_executor(io, [signal, token](error_code) {})));
    time.advance(1ms);
    CHECK(token.use_count() == 2);
  }
  CHECK(token.use_count() == 1);
}

TEST_CASE("a refused wait also leaves the slot free") {
  asio::io_context io;
  journal notes;
  cancellation_signal signal;
  manual_timer time;
  time.stop();
  async_wait_for(time, 1ms, ending_on(io, signal, notes));
  run_ready(io);
  CHECK(notes.take() == "aborted");
  CHECK_FALSE(signal.slot().has_handler());
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT

TEST_CASE("the first of two waits cancels the other one") {
  using namespace asio::experimental::awaitable_operators;
  asio::io_context io;
  manual_timer time;
  std::optional<std::size_t> winner;
  asio::co_spawn(
      io,
      [](manual_timer& t, std::optional<std::size_t>& w) -> asio::awaitable<void> {
        const auto ended = co_await (async_wait_for(t, 2ms, asio::use_awaitable) ||
                                     async_wait_for(t, 1ms, asio::use_awaitable));
        w = ended.index();
      }(time, winner),
      asio::detached);
  run_ready(io);
  CHECK(time.pending() == 2);
  time.advance(1ms);
  CHECK_FALSE(has_work(io));
  CHECK(winner == 1u);
  CHECK(time.pending() == 0);
  CHECK(time.stats().cancelled == 1);
}

#endif

}  // namespace adapters_asio_cancellation
