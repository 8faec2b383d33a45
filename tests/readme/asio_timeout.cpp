// Timeouts for Asio operations. Boost 1.77 and later.
#include <rondo/asio.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <doctest/doctest.h>
#include <rondo/timer.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace readme_asio_timeout {

using namespace std::chrono_literals;

TEST_CASE("deadlines for Asio operations") {
  using boost::asio::use_awaitable;
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  rondo::timer timer;
  tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket socket(io);
  std::array<char, 64> header{}, body{};
  std::string happened;
  const auto give_up = [&happened] { happened += "given up "; };

  const auto ask = [&]() -> boost::asio::awaitable<void> {
    co_await socket.async_connect(acceptor.local_endpoint(), rondo::cancel_after(timer, 5s, use_awaitable));
    const auto [error, bytes] = co_await socket.async_read_some(
        boost::asio::buffer(header), rondo::cancel_after(timer, 10ms, boost::asio::as_tuple(use_awaitable)));
    if (error == boost::asio::error::operation_aborted) give_up();
    boost::asio::async_read(socket, boost::asio::buffer(body),
                            rondo::cancel_at(timer, rondo::scheduler::clock::now() + 10ms,
                                             [&](boost::system::error_code e, std::size_t) {
                                               happened += e ? "late" : "in time";
                                             }));
  };
  boost::asio::co_spawn(io, ask, boost::asio::detached);
  io.run();
  CHECK(happened == "given up late");
  CHECK(timer.pending() == 0);
}

TEST_CASE("a timeout for an Asio operation") {
  using boost::asio::ip::udp;
  boost::asio::io_context io;
  rondo::timer timer;
  udp::socket socket(io, udp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  std::array<char, 64> answer{};
  bool given_up = false;
  const auto give_up = [&given_up] { given_up = true; };

  const auto ask = [&]() -> boost::asio::awaitable<void> {
    using namespace boost::asio::experimental::awaitable_operators;
    const auto token = boost::asio::use_awaitable;
    const auto first = co_await (socket.async_receive(boost::asio::buffer(answer), token) ||
                                 rondo::async_wait_for(timer, 10ms, token));
    if (first.index() == 1) give_up();
  };
  boost::asio::co_spawn(io, ask, boost::asio::detached);
  io.run();
  CHECK(given_up);
}

}  // namespace readme_asio_timeout

#endif
