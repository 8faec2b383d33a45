// Shared by the tests of Asio waits.
#pragma once

#include <string>
#include <utility>

#include <rondo/asio.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include "scheduler/virtual_time.hpp"

namespace rondo::test {

using boost::system::error_code;

inline std::string name_of(error_code e) {
  if (!e) return "ok";
  return e == boost::asio::error::operation_aborted ? "aborted" : e.message();
}

/// A handler that notes how the wait ended.
inline auto ending(journal& notes) {
  return [&notes](error_code e) { notes.add(name_of(e)); };
}

/// As above, but on an executor.
template <class Executor>
auto ending_on(const Executor& where, journal& notes) {
  return boost::asio::bind_executor(where, ending(notes));
}

/// Runs the ready handlers, even if the context had run out of work before.
inline std::size_t run_ready(boost::asio::io_context& io) {
  io.restart();
  return io.poll();
}

/// Whether io.run() would continue: work is ready or outstanding.
inline bool has_work(boost::asio::io_context& io) {
  run_ready(io);
  return !io.stopped();
}

}  // namespace rondo::test
