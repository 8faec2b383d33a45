// Operations with a deadline, on virtual time. Boost 1.77 and later.
#include "adapters/asio_deadlines.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <list>
#include <stdexcept>
#include <string>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

namespace adapters_asio_deadline {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;
using asio::cancellation_signal;
using asio::cancellation_type;

TEST_CASE_FIXTURE(line,
                  "an operation that ends before its deadline has its own result, and no timer is left") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, [&](error_code e, std::size_t n) {
                         CHECK(time.pending() == 0);
                         notes.add(read(e, n));
                       }));
  CHECK(time.next_due() == at(1s));
  CHECK(has_work(io));
  say("hi");
  CHECK(run_ready(io) == 1);
  CHECK(io.stopped());
  CHECK(notes.take() == "ok 2");
  CHECK(time.stats().cancelled == 1);
  CHECK(time.advance(1h) == 0);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "");
}

TEST_CASE_FIXTURE(line, "an operation that reaches its deadline is cancelled in its context, and says so") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, noting()));
  time.advance(999ms);
  CHECK(has_work(io));
  time.advance(1ms);
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "cancel_at: the deadline is a moment") {
  time.advance(1h);
  ours.async_read_some(asio::buffer(input), cancel_at(time, at(1h + 5ms), noting()));
  CHECK(time.next_due() == at(1h + 5ms));
  time.advance(4ms);
  CHECK(has_work(io));
  time.advance(1ms);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

TEST_CASE_FIXTURE(line, "a deadline that has passed cancels at the next pass, not in the call") {
  auto passed = 0s;
  SUBCASE("zero") {}
  SUBCASE("negative") { passed = -1h; }
  ours.async_read_some(asio::buffer(input), cancel_after(time, passed, noting()));
  ours.async_write_some(asio::buffer("x", 1), cancel_at(time, time.now() - 1h, noting()));
  CHECK(notes.take() == "");
  CHECK(has_work(io));
  CHECK(notes.take() == "ok 1");  // it did not have to wait
  time.advance(0s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

TEST_CASE_FIXTURE(line, "the largest deadline never comes") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, rondo::duration::max(), noting()));
  CHECK(time.next_due() == std::nullopt);
  time.advance(1'000'000h);
  CHECK(has_work(io));
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok 2");
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "NaN is refused by the call, and nothing begins") {
  const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(ours.async_read_some(asio::buffer(input), cancel_after(time, nan, noting())),
                  std::invalid_argument);
  CHECK_FALSE(has_work(io));
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "a cancellation that comes when the operation has ended does not reach it") {
  cancelled_here operation;
  int cancelled = 0;
  operation.on_cancel = [&](cancellation_type) { ++cancelled; };
  operation.begin(cancel_after(time, 1s, ending_on(io.get_executor(), notes)));
  time.advance(1s);  // the cancellation is queued
  operation.end(error_code());
  CHECK(notes.take() == "ok");
  CHECK_FALSE(has_work(io));
  CHECK(cancelled == 0);
}

TEST_CASE_FIXTURE(line, "each of several operations has its own deadline") {
  for (int i = 0; i != 3; ++i) {
    ours.async_read_some(asio::buffer(input), cancel_after(time, 2s, noting()));
    time.advance(1s);
    say("hi");
    CHECK_FALSE(has_work(io));
  }
  CHECK(notes.take() == "ok 2 ok 2 ok 2");
  ours.async_read_some(asio::buffer(input), cancel_after(time, 2s, noting()));
  time.advance(2s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

TEST_CASE_FIXTURE(line, "other operations of the same object go on") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, noting()));
  ours.async_wait(local::socket::wait_read, [this](error_code e) { notes.add("wait: " + name_of(e)); });
  time.advance(1s);
  CHECK(has_work(io));
  CHECK(notes.take() == "aborted 0");
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "wait: ok");
}

TEST_CASE_FIXTURE(line, "a timer of Asio's") {
  asio::steady_timer timer(io, 1h);
  SUBCASE("reaches its deadline") {
    timer.async_wait(cancel_after(time, 1s, ending(notes)));
    CHECK(has_work(io));
    time.advance(1s);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted");
  }
  SUBCASE("expires before") {
    timer.expires_after(-1s);
    timer.async_wait(cancel_after(time, 1s, ending(notes)));
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "ok");
    CHECK(time.pending() == 0);
  }
}

TEST_CASE_FIXTURE(line, "a wait for another scheduler, and for the same one") {
  manual_timer other;
  async_wait_for(other, 1h, cancel_after(time, 1s, ending_on(io.get_executor(), notes)));
  async_wait_for(time, 1h, cancel_after(time, 1s, ending_on(io.get_executor(), notes)));
  CHECK(has_work(io));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted aborted");
  CHECK(other.pending() == 0);
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "a resolver, whose operations cannot be cancelled, has its own result") {
  using asio::ip::tcp;
  tcp::resolver resolver(io);
  resolver.async_resolve("127.0.0.1", "80", tcp::resolver::numeric_host | tcp::resolver::numeric_service,
                         cancel_after(time, 1s, [&](error_code e, const tcp::resolver::results_type& found) {
                           CHECK(time.pending() == 0);
                           notes.add(name_of(e) + ' ' + std::to_string(found.size()));
                         }));
  SUBCASE("in time") {}
  SUBCASE("too late") { time.advance(1s); }
  io.run();
  CHECK(notes.take() == "ok 1");
}

TEST_CASE_FIXTURE(line, "async_read: what has been read by the deadline") {
  asio::async_read(ours, asio::buffer(input), cancel_after(time, 1s, noting()));
  CHECK(has_work(io));
  say("hi");
  CHECK(has_work(io));
  SUBCASE("not all") {
    time.advance(1s);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted 2");
  }
  SUBCASE("all") {
    say(" there");
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "ok 8");
  }
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "async_read_until and async_write") {
  std::string text;
  asio::async_read_until(ours, asio::dynamic_buffer(text), '\n', cancel_after(time, 1s, noting()));
  const std::string much(10'000'000, 'x');
  asio::async_write(ours, asio::buffer(much), cancel_after(time, 2s, [this](error_code e, std::size_t n) {
                      notes.add("written: " + name_of(e));
                      CHECK(n > 0);
                      CHECK(n < 10'000'000);
                    }));
  CHECK(has_work(io));
  time.advance(1s);
  CHECK(has_work(io));
  CHECK(notes.take() == "aborted 0");
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "written: aborted");
}

TEST_CASE_FIXTURE(line, "async_connect: a list of addresses") {
  using asio::ip::tcp;
  const auto loopback = asio::ip::address_v4::loopback();
  tcp::acceptor listening(io, {loopback, 0});
  tcp::acceptor closed(io, {loopback, 0});
  const std::array addresses{closed.local_endpoint(), listening.local_endpoint()};
  closed.close();
  tcp::socket socket(io);
  asio::async_connect(socket, addresses, cancel_after(time, 1s, [&](error_code e, const tcp::endpoint& to) {
                        notes.add(name_of(e));
                        CHECK(to == addresses[1]);
                      }));
  io.run();
  CHECK(notes.take() == "ok");
  CHECK(time.pending() == 0);

  listening.async_accept(cancel_after(time, 1s, [&](error_code e, tcp::socket) { notes.add(name_of(e)); }));
  run_ready(io);  // the connection from before
  CHECK(notes.take() == "ok");
  listening.async_accept(cancel_after(time, 1s, [&](error_code e, tcp::socket) { notes.add(name_of(e)); }));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted");
}

TEST_CASE_FIXTURE(line, "async_connect: an address that does not answer") {
  using asio::ip::tcp;
  tcp::acceptor full(io, tcp::v4());
  full.bind({asio::ip::address_v4::loopback(), 0});
  full.listen(0);
  std::list<tcp::socket> waiting;
  for (int i = 0; i != 4; ++i)  // more than listen() keeps, so the last ones get no answer
    waiting.emplace_back(io).async_connect(full.local_endpoint(), asio::detached);
  CHECK(has_work(io));
  tcp::socket socket(io);
  const std::array addresses{full.local_endpoint()};
  asio::async_connect(socket, addresses,
                      cancel_after(time, 1s, [this](error_code e, const tcp::endpoint& to) {
                        notes.add(name_of(e));
                        CHECK(to == tcp::endpoint());
                      }));
  time.advance(999ms);
  run_ready(io);
  CHECK(notes.take() == "");
  time.advance(1ms);
  run_ready(io);
  CHECK(notes.take() == "aborted");
  CHECK(time.pending() == 0);
}

// --- The token's own slot

TEST_CASE_FIXTURE(line, "the token's slot also cancels, and is free when the handler is called") {
  cancellation_signal signal;
  const auto begin = [&] {
    ours.async_read_some(
        asio::buffer(input),
        cancel_after(time, 1s, asio::bind_cancellation_slot(signal.slot(), [&](error_code e, std::size_t n) {
                       CHECK_FALSE(signal.slot().has_handler());
                       notes.add(read(e, n));
                     })));
    CHECK(signal.slot().has_handler());
  };
  begin();
  SUBCASE("emitted") {
    signal.emit(cancellation_type::total);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted 0");
  }
  SUBCASE("emitted with a type that cancels nothing") {
    signal.emit(cancellation_type::none);
    CHECK(has_work(io));
    time.advance(1s);
    signal.emit(cancellation_type::total);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted 0");
  }
  SUBCASE("the deadline comes") {
    time.advance(1s);
    CHECK_FALSE(has_work(io));
    CHECK(notes.take() == "aborted 0");
    signal.emit(cancellation_type::total);
  }
  CHECK(time.pending() == 0);
  begin();
  say("hi");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok 2");
}

TEST_CASE_FIXTURE(line, "a deadline inside a deadline: the earlier one counts") {
  ours.async_read_some(asio::buffer(input), cancel_after(time, 2s, cancel_after(time, 1s, noting())));
  CHECK(time.pending() == 2);
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, cancel_after(time, 2s, noting())));
  time.advance(1s);
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
  CHECK(time.pending() == 0);
}

// --- Executors

TEST_CASE_FIXTURE(line, "the operation is cancelled with terminal, on the handler's executor") {
  auto strand = asio::make_strand(io);
  cancelled_here operation;
  std::string where;
  operation.on_cancel = [&](cancellation_type type) {
    CHECK(type == cancellation_type::terminal);
    where = strand.running_in_this_thread() ? "on the strand" : "elsewhere";
  };
  operation.begin(cancel_after(time, 1s, asio::bind_executor(strand, ending(notes))));
  time.advance(1s);
  CHECK(where == "");
  run_ready(io);
  CHECK(where == "on the strand");
  CHECK(notes.take() == "");
  operation.end(error_code());
  CHECK(notes.take() == "ok");  // its own result
}

TEST_CASE_FIXTURE(line, "the handler runs on its own executor, and the operation is cancelled there") {
  asio::io_context other;
  ours.async_read_some(asio::buffer(input), cancel_after(time, 1s, asio::bind_executor(other, noting())));
  SUBCASE("in time") {
    say("hi");
    run_ready(io);
    CHECK(notes.take() == "");
    run_ready(other);
    CHECK(notes.take() == "ok 2");
  }
  SUBCASE("at the deadline") {
    time.advance(1s);
    run_ready(io);
    run_ready(io);
    CHECK(notes.take() == "");
    run_ready(other);
    CHECK(notes.take() == "");
    run_ready(io);
    run_ready(other);
    CHECK(notes.take() == "aborted 0");
  }
  CHECK(time.pending() == 0);
}

TEST_CASE_FIXTURE(line, "a driver on the handler's own context: the task runs there") {
  manual_timer on_io(options{.run_on = post_to(io)});
  ours.async_read_some(asio::buffer(input), cancel_after(on_io, 1s, noting()));
  on_io.advance(1s);
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted 0");
}

}  // namespace adapters_asio_deadline
