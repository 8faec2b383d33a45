// The listings of event_loops.md about Asio.
#include <rondo/asio.hpp>

#include <chrono>
#include <future>
#include <string>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>
#include <rondo/manual_timer.hpp>
#include <rondo/timer.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif
#ifdef __linux__
#include <boost/asio/posix/stream_descriptor.hpp>
#include <rondo/event_fd.hpp>
#endif

namespace readme_asio {

using namespace std::chrono_literals;
using boost::system::error_code;

TEST_CASE("any Asio completion token can wait") {
  boost::asio::io_context io;
  rondo::timer timer;
  std::string said;
  const auto greet = [&said](error_code e) { said = e ? e.message() : "hello"; };

  rondo::async_wait_for(timer, 10ms, boost::asio::bind_executor(io, greet));
  std::future<void> later = rondo::async_wait_for(timer, 20ms, boost::asio::use_future);

  io.run();
  CHECK(said == "hello");
  CHECK_NOTHROW(later.get());
}

TEST_CASE("an Asio thread pool as the executor") {
  boost::asio::thread_pool pool(2);
  std::promise<void> ran;

  rondo::timer timer({.run_on = rondo::post_to(pool)});

  timer.schedule_after(1ms, [&] { ran.set_value(); });
  CHECK(ran.get_future().wait_for(1min) == std::future_status::ready);
}

TEST_CASE(
    "the call for steady_timer::async_wait() waits, and ends with operation_aborted when it is cancelled") {
  boost::asio::io_context io;
  rondo::manual_timer timer;
  const rondo::duration d = 1h;
  error_code result;
  auto token = boost::asio::bind_executor(io, [&result](error_code e) { result = e; });

  rondo::async_wait_for(timer, d, token);
  timer.stop();
  io.run();
  CHECK(result == boost::asio::error::operation_aborted);
}

TEST_CASE("a strand as the executor of one timer") {
  boost::asio::io_context io;
  const auto strand = boost::asio::make_strand(io);
  bool is_in_strand = false;
  rondo::timer timer;
  timer.schedule_after(
      1ms, [&] { is_in_strand = strand.running_in_this_thread(); }, rondo::on(rondo::post_to(strand)));
  const auto work = boost::asio::make_work_guard(io);
  while (timer.stats().completed == 0) io.run_one();
  CHECK(is_in_strand);
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
TEST_CASE("an Asio coroutine waits") {
  boost::asio::io_context io;
  rondo::timer timer;
  int beats = 0;
  const auto send_heartbeat = [&beats] { ++beats; };

  const auto heart = [&]() -> boost::asio::awaitable<void> {
    while (beats < 3) {
      co_await rondo::async_wait_for(timer, 1ms, boost::asio::use_awaitable);
      send_heartbeat();
    }
  };
  boost::asio::co_spawn(io, heart, boost::asio::detached);
  io.run();
  CHECK(beats == 3);
}
#endif

#if defined(BOOST_ASIO_HAS_CO_AWAIT) && defined(__linux__)
TEST_CASE("an io_context drives a polled timer") {
  boost::asio::io_context io;
  rondo::polled_timer timer;
  rondo::event_fd due(timer);

  const auto drive = [&]() -> boost::asio::awaitable<void> {
    boost::asio::posix::stream_descriptor watched(io, ::dup(due.native_handle()));  // closes its own copy
    for (;;) {
      co_await watched.async_wait(watched.wait_read, boost::asio::use_awaitable);
      due.run_due();
    }
  };
  boost::asio::co_spawn(io, drive, boost::asio::detached);

  int runs = 0;
  timer.schedule(rondo::every(1ms).times(5), [&] {
    if (++runs == 5) io.stop();
  });
  io.run();
  CHECK(runs == 5);
}
#endif

}  // namespace readme_asio
