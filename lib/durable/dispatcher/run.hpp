// A task in the hands of a dispatcher.
#pragma once

#include <list>
#include <optional>
#include <string>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// One task from its claim on until the database knows what has become of it.
struct run {
  enum class outcome {
    open,         ///< it waits, or is in progress
    finished,     ///< the handler has returned
    failed,       ///< the handler has thrown
    not_started,  ///< the run has begun in the database, and is not to be made here
  };

  task what;
  time_point due;          ///< on the scheduler's clock: never before the engine's
  time_point lease_until;  ///< likewise: never after the engine's
  outcome how = outcome::open;
  std::string reason = {};                   ///< failed: what the handler threw, in UTF-8
  std::optional<duration> retry_after = {};  ///< failed: none means that it was the last attempt
  bool perhaps_told = false;  ///< the database may know: the answer to a turn that said so was lost

  ticket of() const noexcept { return {what.id, what.fence}; }
};

/// A run is a node of a list from its claim to its end. So it is moved without memory, which may be short, and its
/// address is its name on the wheel.
using run_list = std::list<run>;

/// "task 7 of queue 'mail'"
inline std::string name_of(const task& t) {
  return "task " + std::to_string(t.id) + " of queue '" + t.queue + "'";
}

}  // namespace rondo::durable::detail
