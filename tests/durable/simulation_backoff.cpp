#include "durable/simulation_backoff.hpp"

#include <algorithm>
#include <chrono>

namespace durable_test {

using namespace std::chrono_literals;
using rondo::duration;
using rondo::time_point;

namespace {

// A rest after the n-th failure in a row is a random time between the shortest and 2^n times that, at most the longest.
constexpr duration shortest = 100ms, longest = 5s;
// The shortest rest before locked rows are asked for again.
constexpr duration locked_rest = 2ms;
// Without an alarm, any event ends a rest: the next look. And a step may have to wait for those of others.
constexpr duration most_overdue = 500ms + 150ms;
// Ten rests of up to 5 s take less than this only once in more than 10^8 cases.
constexpr int several = 10;
constexpr duration least_for_several = 4s;

}  // namespace

void simulation_backoff::failed(time_point now) noexcept {
  ++in_a_row_;
  if (in_a_row_ == in_full) in_full_since_ = now;
  has_failed_ = true;
  some_are_locked_ = false;
  last_ = now;
}

void simulation_backoff::succeeded(time_point now, bool adopts, bool some_are_locked) noexcept {
  if (!adopts) in_a_row_ = 0;
  has_failed_ = false;
  some_are_locked_ = some_are_locked;
  last_ = now;
}

std::string simulation_backoff::check(time_point now, time_point calm_since, duration longest_step) const {
  const duration rest = now - last_;
  if (!alarm_may_lack_) {
    if (has_failed_ && rest < shortest) return "tries a database that failed again too soon";
    if (some_are_locked_ && rest < locked_rest) return "asks too soon for locked rows";
    if (has_failed_ && in_a_row_ == in_full + several && last_ - in_full_since_ < least_for_several)
      return "tries a database that goes on failing too often";
  }
  const duration most = std::min(longest, shortest * (1 << std::min(in_a_row_, in_full)));
  if (has_failed_ && now - std::max(last_, calm_since) > most + most_overdue + longest_step)
    return "does not try a database that failed again for too long";
  return "";
}

}  // namespace durable_test
