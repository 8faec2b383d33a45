// Operations with a deadline whose scheduler or context ends, or that end at an unusual moment. Boost 1.77 and later.
#include "adapters/asio_deadlines.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <rondo/polled_timer.hpp>

#include "failing_new.hpp"

namespace adapters_asio_deadline_ends {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

TEST_CASE_FIXTURE(line, "an operation is cancelled if its scheduler cannot take the timer") {
  manual_timer full(options{.max_pending = 1});
  manual_timer stopped;
  const timer_id other = full.schedule_after(1h, [] {});
  stopped.stop();
  ours.async_read_some(asio::buffer(input), cancel_after(full, 1h, noting()));
  ours.async_read_some(asio::buffer(input), cancel_after(stopped, 1h, noting()));
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0 aborted 0");
  CHECK(full.pending(other));
}

TEST_CASE_FIXTURE(line,
                  "an operation is cancelled when its scheduler is destroyed, and when stop()'s list is") {
  std::optional<manual_timer> gone(std::in_place);
  ours.async_read_some(asio::buffer(input), cancel_after(*gone, 1h, noting()));
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1h, noting()));
  gone.reset();
  CHECK(has_work(io));
  CHECK(notes.take() == "aborted 0");
  std::vector<unfired> list = time.stop();
  CHECK(list.size() == 1);
  CHECK(has_work(io));
  SUBCASE("dropped") { list.clear(); }
  SUBCASE("run by hand") { list.front().work(); }
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

TEST_CASE_FIXTURE(line,
                  "an operation that ends while a list from stop() holds its task leaves that task empty") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1h, noting()));
  std::vector<unfired> list = time.stop();
  say("hi");
  CHECK_FALSE(has_work(io));
  list.front().work();
  list.clear();
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok 2");
}

TEST_CASE("a context that is destroyed with operations pending destroys their handlers and timers") {
  const auto token = std::make_shared<int>(0);
  asio::cancellation_signal signal;
  manual_timer time;
  std::array<char, 8> input{};
  {
    line pending;
    const auto handler = [token](error_code, std::size_t) { FAIL("called"); };
    pending.ours.async_read_some(asio::buffer(input), cancel_after(time, 1h, handler));
    asio::async_read(pending.ours, asio::buffer(input), cancel_after(time, 1h, handler));
    pending.ours.async_read_some(asio::buffer(input), cancel_after(time, 1ms, handler));
    asio::steady_timer timer(pending.io, 1h);
    timer.async_wait(cancel_after(
        time, 1h, asio::bind_cancellation_slot(signal.slot(), [token](error_code) { FAIL("called"); })));
    run_ready(pending.io);
    time.advance(1ms);  // one cancellation is queued
    CHECK(token.use_count() == 6);
    CHECK(time.pending() == 3);
    SUBCASE("with its scheduler alive") {}
    SUBCASE("after the scheduler was stopped") { time.stop(); }
  }
  CHECK(token.use_count() == 1);
  CHECK(time.pending() == 0);
  signal.emit(asio::cancellation_type::total);  // reaches nothing
  CHECK(time.advance(2h) == 0);
}

TEST_CASE_FIXTURE(line, "nothing is kept of a handler that has been called") {
  const auto token = std::make_shared<int>(0);
  asio::cancellation_signal signal;
  std::vector<unfired> list;
  ours.async_read_some(
      asio::buffer(input),
      cancel_after(time, 1h,
                   asio::bind_cancellation_slot(signal.slot(), [this, token](error_code e, std::size_t n) {
                     notes.add(read(e, n));
                   })));
  SUBCASE("the timer is cancelled") {}
  SUBCASE("the task stays in a list") { list = time.stop(); }
  CHECK(token.use_count() == 2);
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok 2");
  CHECK(token.use_count() == 1);
}

TEST_CASE("an operation may end inside its cancellation") {
  manual_timer time;
  asio::io_context io;
  journal notes;
  asio::cancellation_signal signal;
  cancelled_here operation;
  operation.on_cancel = [&](asio::cancellation_type) { operation.end(asio::error::timed_out); };
  operation.begin(cancel_after(
      time, 1s, asio::bind_cancellation_slot(signal.slot(), ending_on(io.get_executor(), notes))));
  SUBCASE("by its deadline") { time.advance(1s); }
  SUBCASE("by the token's slot") { signal.emit(asio::cancellation_type::terminal); }
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == error_code(asio::error::timed_out).message());
  CHECK(time.pending() == 0);
  CHECK_FALSE(signal.slot().has_handler());
}

TEST_CASE("an initiation that throws leaves no timer") {
  manual_timer time;
  asio::cancellation_signal signal;
  const auto begin = [&](auto&& token) {
    return asio::async_initiate<decltype(token), void(error_code)>(
        [](auto) { throw std::runtime_error("no socket"); }, token);
  };
  CHECK_THROWS_WITH(
      begin(cancel_after(time, 1s, asio::bind_cancellation_slot(signal.slot(), [](error_code) {}))),
      "no socket");
  CHECK(time.pending() == 0);
  signal.emit(asio::cancellation_type::terminal);
}

// on_earlier is called inside the scheduling call, before the operation has begun.

TEST_CASE_FIXTURE(line, "an operation whose time comes while it begins is cancelled afterwards") {
  for (const bool on_executor : {false, true}) {
    polled_timer timer;
    asio::cancellation_signal signal;
    SUBCASE("dropped") {
      timer.on_earlier([&] { timer.stop(); });
    }
    SUBCASE("run by hand") {
      timer.on_earlier([&] {
        for (unfired& u : timer.stop()) u.work();
      });
    }
    SUBCASE("the token's slot is emitted") {
      timer.on_earlier([&] { signal.emit(asio::cancellation_type::terminal); });
    }
    const auto begin = [&] {
      ours.async_read_some(asio::buffer(input),
                           cancel_after(timer, 1h, asio::bind_cancellation_slot(signal.slot(), noting())));
      CHECK(notes.take() == "");
    };
    if (on_executor)
      asio::post(io, begin);
    else
      begin();
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted 0");
    CHECK(timer.pending() == 0);
  }
}

TEST_CASE_FIXTURE(line, "a handler may destroy the scheduler, and begin another operation") {
  auto gone = std::make_unique<manual_timer>();
  ours.async_read_some(asio::buffer(input), cancel_after(*gone, 1s, [&](error_code e, std::size_t n) {
                         notes.add(read(e, n));
                         gone.reset();
                         ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, noting()));
                       }));
  std::string expected;
  SUBCASE("in time") {
    say("hi");
    expected = "ok 2 aborted 0";
  }
  SUBCASE("at the deadline") {
    gone->advance(1s);
    expected = "aborted 0 aborted 0";
  }
  run_ready(io);
  CHECK(gone == nullptr);
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == expected);
}

/// Reads one message after another, all in one io_context::run(), which keeps memory for the next operation.
template <class Read>
std::size_t allocations_of(line& l, int messages, Read read) {
  std::function<void()> next = [&] {
    if (messages-- == 0) return;
    read([&next](error_code, std::size_t) { next(); });
    l.say("hi");
  };
  const std::size_t before = allocations();
  next();
  l.io.restart();
  l.io.run();
  return allocations() - before;
}

TEST_CASE_FIXTURE(line, "a deadline takes no allocation in a running context (Boost 1.79; before: one)") {
  if (!failing_new::available) return;
#if __has_include(<boost/asio/recycling_allocator.hpp>)
  constexpr std::size_t additional = 0;
#else
  constexpr std::size_t additional = 1;
#endif
  const auto of_100 = [this](auto read) {
    allocations_of(*this, 10, read);  // the first time, more is allocated
    const std::size_t few = allocations_of(*this, 10, read);
    return allocations_of(*this, 110, read) - few;
  };
  const std::size_t without =
      of_100([this](auto handler) { ours.async_read_some(asio::buffer(input), handler); });
  const std::size_t with = of_100(
      [this](auto handler) { ours.async_read_some(asio::buffer(input), cancel_after(time, 1h, handler)); });
  CHECK(with == without + 100 * additional);
}

TEST_CASE_FIXTURE(line, "without memory for the deadline the initiation throws, and nothing begins") {
  if (!failing_new::available) return;
  for (std::size_t after = 0; after != 5; ++after) {
    bool failed = false;
    {
      const failing_new none(after, 1);
      try {
        ours.async_read_some(asio::buffer(input), cancel_after(time, 1h, noting()));
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    CHECK(time.pending() == (failed ? 0u : 1u));
    if (failed) CHECK_FALSE(has_work(io));
    if (!failed) say("hi");
    run_ready(io);
    CHECK(notes.take() == (failed ? "" : "ok 2"));
  }
}

}  // namespace adapters_asio_deadline_ends
