// A scheduler's core under the explorer, in virtual time.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/alarm.hpp"
#include "drivers/drive.hpp"
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "scheduler/core.hpp"
#include "scheduler/virtual_time.hpp"

namespace rondo::detail {

extern template class basic_core<test::explored>;

}  // namespace rondo::detail

namespace rondo::test {

/// The scenario drives it, with passes or with the loop of the real driver thread.
template <class Alarm = detail::alarm<explored>>
class explored_core final : public detail::basic_core<explored> {
 public:
  /// `has_driver` is true if one of the threads calls drive().
  explored_core(const options& o, bool has_driver) : basic_core(o, at(0s)), has_driver_(has_driver) {}

  time_point now() const noexcept override { return virtual_time::now(); }
  std::size_t pass() { return run_pass(time_point::max(), unlimited); }
  void drive() noexcept {
    detail::drive(*this, alarm_);
    driver_ended_.set();
  }

 private:
  void next_due_moved_earlier() noexcept override { alarm_.ring(); }
  void end_driver() noexcept override {
    if (has_driver_) driver_ended_.wait();
  }

  Alarm alarm_;
  const bool has_driver_;
  explored_event driver_ended_;
};

}  // namespace rondo::test
