// The clocks of a simulation.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/microseconds.hpp"

namespace durable_test {

/// They all go at the same rate. That of the engine may be set.
class simulated_clocks {
 public:
  static constexpr rondo::time_point never = rondo::time_point::min();

  rondo::time_point now() const noexcept { return now_; }
  rondo::durable::wall_time engine() const noexcept { return at(now_); }
  std::int64_t engine_microseconds() const noexcept {
    return std::chrono::floor<std::chrono::microseconds>(engine().time_since_epoch()).count();
  }
  /// What the engine's clock would have shown, or will show, if nobody sets it.
  rondo::durable::wall_time at(rondo::time_point t) const noexcept {
    return engine_zero_ + (t - rondo::time_point{});
  }
  /// When the engine's clock shows that, if nobody sets it.
  rondo::time_point when(std::int64_t microseconds) const noexcept {
    return rondo::time_point{} + (rondo::durable::detail::wall_time_of(microseconds) - engine_zero_);
  }

  void pass_to(rondo::time_point t) noexcept { now_ = std::max(now_, t); }
  void set_engine(rondo::duration by) noexcept {
    engine_zero_ += by;
    (by < rondo::duration::zero() ? set_back_ : set_forward_) = now_;
  }

  ///@{
  /// When somebody last did that.
  rondo::time_point set_back() const noexcept { return set_back_; }
  rondo::time_point set_forward() const noexcept { return set_forward_; }
  rondo::time_point set() const noexcept { return std::max(set_back_, set_forward_); }
  ///@}

 private:
  rondo::time_point now_{};
  rondo::durable::wall_time engine_zero_{std::chrono::seconds(1'700'000'000)};
  rondo::time_point set_back_ = never, set_forward_ = never;
};

}  // namespace durable_test
