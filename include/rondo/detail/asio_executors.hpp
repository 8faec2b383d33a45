// The executors of Asio's handlers.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 omits it

#include <boost/asio/associated_executor.hpp>
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

}  // namespace rondo::detail
