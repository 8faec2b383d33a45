// A task that a dispatcher has claimed.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <version>
#include <vector>

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// The bytes of a run that count as held by its dispatcher, until it is destroyed. All runs of a dispatcher are created
/// and destroyed on its database thread, or after that thread has ended.
class held_bytes {
 public:
  held_bytes() = default;
  held_bytes(std::shared_ptr<std::size_t> total, std::size_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  ~held_bytes() {
    if (total_ != nullptr) *total_ -= bytes_;
  }
  held_bytes(held_bytes&&) = default;  // leaves no total behind
  held_bytes& operator=(held_bytes&&) = delete;
  held_bytes(const held_bytes&) = delete;
  held_bytes& operator=(const held_bytes&) = delete;

 private:
  std::shared_ptr<std::size_t> total_;
  std::size_t bytes_ = 0;
};

/// One task, from its claim until the database knows its outcome.
struct run {
  enum class outcome {
    open,         ///< waiting, or in progress
    finished,     ///< the handler has returned
    failed,       ///< the handler has thrown
    snoozed,      ///< the handler wants the task to be due again later
    dead,         ///< the handler has given the task up
    expired,      ///< the run has not begun: the lease of the last attempt for the point had run out
    passed_over,  ///< the run has not begun, as its point has gone by: the task waits for the next one
    not_started,  ///< the run has begun in the database, but must not be executed here
  };

  task what;
  time_point due;          ///< on the scheduler's clock; never earlier than by the engine's
  time_point lease_until;  ///< on the scheduler's clock; never later than by the engine's
  int max_attempts = 0;    ///< of this task; 0: the dispatcher's
  bool in_lane = false;
  std::optional<schedule> repeats = {};  ///< of a repeated task
  missed_points missed = missed_points::run_once;
  std::optional<std::chrono::seconds> point_offset = {};  ///< see zoned_point
  held_bytes bytes = {};
  outcome how = outcome::open;
  std::string reason = {};  ///< if failed or dead: why, in UTF-8
  /// If failed or snoozed. None means that it was the last attempt.
  std::optional<duration> retry_after = {};
  /// Of a repeated task, once its point is over. None means that there is no other.
  std::optional<zoned_point> next = {};
  bool perhaps_told = false;  ///< the database may know the outcome: the answer to a turn with it was lost

#ifdef __cpp_lib_jthread
  std::stop_source stop =
      std::stop_source(std::nostopstate);  ///< with a state only if the handler takes tokens
#endif

  ticket of() const noexcept { return {what.id, what.fence}; }
  /// Precondition: the task is repeated.
  zoned_point point() const { return {*what.point, point_offset}; }
  /// Precondition: it is over. Whether it had begun in the database.
  bool had_begun() const noexcept { return how != outcome::expired && how != outcome::passed_over; }
  /// Whether the task is repeated, and this is the end of what it has to do for its point.
  bool ends_point() const noexcept {
    return what.point && how != outcome::not_started && how != outcome::snoozed && !retry_after;
  }
};

/// A run is a list node from its claim to its end. So moving it never allocates, and the wheel can refer to it by its
/// address.
using run_list = std::list<run>;

/// Adds the beginning of a run to a turn. Throws std::bad_alloc.
inline void put_beginning(const run& r, turn& t) {
  t.begun.push_back(r.of());
  if (r.in_lane) t.in_lanes.push_back(r.of());
  if (r.what.point) t.points.push_back({r.of(), r.point()});
}

/// "task 7 of queue 'mail'"
inline std::string name_of(const task& t) {
  return "task " + std::to_string(t.id) + " of queue '" + t.queue + "'";
}

}  // namespace rondo::durable::detail
