// How soon a dispatcher of a simulation tries its database again.
#pragma once

#include <string>

#include <rondo/time.hpp>

namespace durable_test {

/// Knows the turns of one dispatcher that have failed.
class simulation_backoff {
 public:
  /// With `alarm_may_lack`, the dispatcher's scheduler may have no room for the timer that ends a rest.
  explicit simulation_backoff(bool alarm_may_lack) noexcept : alarm_may_lack_(alarm_may_lack) {}

  void failed(rondo::time_point now) noexcept;
  /// `adopts`: it was only to reconcile the dispatcher with its database. `some_are_locked`: a part must be repeated.
  void succeeded(rondo::time_point now, bool adopts, bool some_are_locked) noexcept;
  /// Before a turn. Returns what is wrong with its time, or nothing. `calm_since`: since then nothing but tasks has
  /// happened to the dispatcher.
  std::string check(rondo::time_point now, rondo::time_point calm_since, rondo::duration longest_step) const;

 private:
  static constexpr int in_full = 6;  // after so many failures in a row, the longest rest can be no longer

  const bool alarm_may_lack_;
  int in_a_row_ = 0;
  bool has_failed_ = false, some_are_locked_ = false;  // the last turn
  rondo::time_point last_{}, in_full_since_{};
};

}  // namespace durable_test
