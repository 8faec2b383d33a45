// A task that a dispatcher has claimed.
#pragma once

#include <list>
#include <optional>
#include <string>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// One task, from its claim until the database knows its outcome.
struct run {
  enum class outcome {
    open,         ///< waiting, or in progress
    finished,     ///< the handler has returned
    failed,       ///< the handler has thrown
    not_started,  ///< the run has begun in the database, but must not be executed here
  };

  task what;
  time_point due;          ///< on the scheduler's clock; never earlier than by the engine's
  time_point lease_until;  ///< on the scheduler's clock; never later than by the engine's
  outcome how = outcome::open;
  std::string reason = {};                   ///< if failed: what the handler threw, in UTF-8
  std::optional<duration> retry_after = {};  ///< if failed: none means that it was the last attempt
  bool perhaps_told = false;  ///< the database may know the outcome: the answer to a turn with it was lost

  ticket of() const noexcept { return {what.id, what.fence}; }
};

/// A run is a list node from its claim to its end. So moving it never allocates, and the wheel can refer to it by its
/// address.
using run_list = std::list<run>;

/// "task 7 of queue 'mail'"
inline std::string name_of(const task& t) {
  return "task " + std::to_string(t.id) + " of queue '" + t.queue + "'";
}

}  // namespace rondo::durable::detail
