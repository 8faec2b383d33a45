// What a deadline costs an operation of Boost.Asio that ends before it: cancel_after(), compared with the two ways to
// write that with a steady_timer, and with no deadline. See README.md.
#include <rondo/asio.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <rondo/timer.hpp>

#include "failing_new.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace benchmark_asio_deadline {

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using namespace std::chrono_literals;

constexpr auto limit = 30s;  // is not reached

/// One of the connections of a server with one thread.
struct connection {
  asio::local::stream_protocol::socket ours, theirs;
  asio::steady_timer timer;
  std::array<char, 64> input{};

  explicit connection(asio::io_context& io) : ours(io), theirs(io), timer(io) {}
};

struct server {
  rondo::timer& deadlines;
  std::uint64_t to_begin;
  std::uint64_t ended = 0;
  std::uint64_t cancelled = 0;

  bool begins() { return to_begin != 0 && to_begin-- != 0; }
};

// The operations: open(connection) once, then prepare(connection) and begin(connection, token).

/// A message that has arrived is read.
struct read_message {
  static void open(connection& c) { asio::local::connect_pair(c.ours, c.theirs); }
  template <class Token>
  static auto begin(connection& c, Token token) {
    return c.ours.async_read_some(asio::buffer(c.input), token);
  }
  static void prepare(connection& c) { c.theirs.write_some(asio::buffer("hello", 5)); }
};

/// Nothing but a turn of the context: most of the time is the deadline's.
struct take_turns {
  static void open(connection&) {}
  template <class Token>
  static auto begin(connection& c, Token token) {
    return asio::post(c.ours.get_executor(), token);
  }
  static void prepare(connection&) {}
};

// The contenders: one operation after another on one connection.

template <class Operation>
awaitable<void> without_deadline(connection& c, server& s) {
  for (; s.begins(); ++s.ended) {
    Operation::prepare(c);
    co_await Operation::begin(c, use_awaitable);
  }
}

template <class Operation>
awaitable<void> with_cancel_after(connection& c, server& s) {
  for (; s.begins(); ++s.ended) {
    Operation::prepare(c);
    co_await Operation::begin(c, rondo::cancel_after(s.deadlines, limit, use_awaitable));
  }
}

template <class Operation>
awaitable<void> with_or(connection& c, server& s) {
  using namespace asio::experimental::awaitable_operators;
  for (; s.begins(); ++s.ended) {
    Operation::prepare(c);
    c.timer.expires_after(limit);
    const auto first = co_await (Operation::begin(c, use_awaitable) || c.timer.async_wait(use_awaitable));
    s.cancelled += first.index();
  }
}

template <class Operation>
awaitable<void> by_hand(connection& c, server& s) {
  for (; s.begins(); ++s.ended) {
    Operation::prepare(c);
    c.timer.expires_after(limit);
    c.timer.async_wait([&](boost::system::error_code e) {
      if (e) return;
      ++s.cancelled;
      c.ours.cancel();
    });
    co_await Operation::begin(c, use_awaitable);
    c.timer.cancel();
  }
}

/// All connections together. The unit is nanoseconds of the process's processors, or allocations if `count` is set.
template <class Operation, class Serve>
measure::sample run(Serve serve, std::size_t connections, std::uint64_t operations, bool count) {
  rondo::timer deadlines;
  asio::io_context io(1);
  server s{deadlines, operations};
  std::vector<std::unique_ptr<connection>> all;
  for (std::size_t i = 0; i != connections; ++i) {
    all.push_back(std::make_unique<connection>(io));
    Operation::open(*all.back());
    asio::co_spawn(io, serve(*all.back(), s), asio::detached);
  }
  const std::size_t allocated = rondo::test::allocations();
  const std::clock_t start = std::clock();
  io.run();
  const double taken = static_cast<double>(std::clock() - start) * (1e9 / CLOCKS_PER_SEC);
  const double allocations = static_cast<double>(rondo::test::allocations() - allocated);
  return {(count ? allocations : taken) / static_cast<double>(operations), s.ended + s.cancelled};
}

template <class Operation>
void compare(measure::report& report, const std::string& what, std::size_t connections) {
  const std::uint64_t operations = report.small() ? 2'000 : 100'000;
  for (const bool count : {false, true}) {
    const auto measured = [=](auto serve) {
      return [=] { return run<Operation>(serve, connections, operations, count); };
    };
    report.compare(
        what + ", " + measure::readable(connections) + " connections" + (count ? ": memory" : ": time"),
        count ? "allocations" : "ns of processor time",
        {{"cancel_after", measured(with_cancel_after<Operation>)},
         {"|| and a steady_timer", measured(with_or<Operation>)},
         {"a steady_timer by hand", measured(by_hand<Operation>)},
         {"no deadline", measured(without_deadline<Operation>)}});
  }
}

}  // namespace benchmark_asio_deadline

int main(int argc, char** argv) {
  using namespace benchmark_asio_deadline;
  measure::report report(measure::read_options(argc, argv));
  compare<read_message>(report, "a message is read", 100);
  compare<take_turns>(report, "a turn of the context", 100);
  compare<take_turns>(report, "a turn of the context", 10'000);
  return report.finish();
}
