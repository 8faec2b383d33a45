// A scheduler's core under the explorer, in virtual time.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/driver_thread.hpp"
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "scheduler/core.hpp"
#include "scheduler/virtual_time.hpp"

namespace rondo::test {

/// The scenario drives it, with passes or with the loop of the real driver thread.
class explored_core final : public detail::core {
 public:
  /// `has_driver` is true if one of the threads calls drive().
  explored_core(const options& o, bool has_driver)
      : core(o, at(0s), kind_of_time::virtual_time), has_driver_(has_driver) {}

  using core::call_out;

  time_point now() const noexcept override { return virtual_time::now(); }
  std::size_t pass() { return run_pass(time_point::max(), unlimited); }
  void drive(const std::function<void(detail::core&, detail::alarm&)>& loop = detail::drive) noexcept {
    loop(*this, alarm_);
    driver_ended_.set();
  }

 private:
  void next_due_moved_earlier() noexcept override { alarm_.ring(); }
  void end_driver() noexcept override {
    if (has_driver_) driver_ended_.wait();
  }

  detail::alarm alarm_;
  const bool has_driver_;
  explored_event driver_ended_;
};

}  // namespace rondo::test
