// The executors of Asio's handlers.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 omits it

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

namespace rondo::detail {

/// The type of get_executor_of(). Asio's own default depends on its version.
template <class Handler>
using asio_executor_of = boost::asio::associated_executor_t<Handler, boost::asio::system_executor>;

/// Where a handler is called, or an initiation takes place.
template <class Handler>
asio_executor_of<Handler> get_executor_of(const Handler& h) noexcept {
  return boost::asio::get_associated_executor(h, boost::asio::system_executor());
}

/// Whoever dispatches with this executor does not wait for what it runs on another thread, unless it can do nothing else.
template <class Executor>
auto without_waiting(const Executor& where) {
  if constexpr (boost::asio::execution::is_executor<Executor>::value)
    return boost::asio::prefer(where, boost::asio::execution::blocking.possibly);
  else
    return where;
}

}  // namespace rondo::detail
