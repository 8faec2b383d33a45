// A row of a store's table, as tests look at it and as the simulated database keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"

namespace durable_test {

using rondo::durable::detail::row_state;

/// Times are in microseconds since 1970. A text is empty if the column is null.
struct row {
  std::int64_t id = 0;
  std::string queue = {}, key = {}, payload = {}, lane = {};
  row_state state = row_state::waiting;
  std::int64_t due = 0;
  std::optional<std::string> next_lane =
      {};  // in the simulated database: that of a task that runs in another one
  std::optional<std::int64_t> place = {};  // of a live task of a lane
  int attempt = 0, max_attempts = 0;
  std::int64_t fence = 0;
  std::string owner = {};
  std::optional<std::int64_t> lease_until = {};
  std::string reason = {};
  std::optional<std::int64_t> point = {}, point_offset = {};
  std::string schedule = {};
  rondo::durable::missed_points missed = rondo::durable::missed_points::run_once;

  friend bool operator==(const row&, const row&) = default;
  /// The lane that the task has been submitted or declared with.
  const std::string& declared_lane() const noexcept { return next_lane ? *next_lane : lane; }
  bool lives() const noexcept { return state != row_state::dead; }
  bool runs() const noexcept { return state == row_state::running || state == row_state::cancelled; }
};

}  // namespace durable_test
