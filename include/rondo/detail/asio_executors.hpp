// The executors of Asio's handlers.
#pragma once

#include <utility>  // before Asio, because Boost 1.74 omits it

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
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

/// Dispatches without waiting for what the executor runs on another thread, unless it can do nothing else.
template <class Executor, class Work>
void dispatch_without_waiting(const Executor& where, Work&& work) {
  using boost::asio::execution::blocking;
  using boost::asio::execution::blocking_t;
  if constexpr (boost::asio::can_query<const Executor&, blocking_t>::value) {
    // An executor that is never to run work where it is submitted stays as it is.
    if (boost::asio::query(where, blocking) != blocking_t::never)
      return boost::asio::dispatch(boost::asio::prefer(where, blocking_t::possibly),
                                   std::forward<Work>(work));
  }
  boost::asio::dispatch(where, std::forward<Work>(work));
}

}  // namespace rondo::detail
