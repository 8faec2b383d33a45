// A scheduler's core under the explorer, on its virtual time.
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

/// Driven by the scenario: by its passes, or by the loop of the real driver thread.
template <class Alarm = detail::alarm<explored>>
class explored_core final : public detail::basic_core<explored> {
 public:
  explicit explored_core(const options& o) : basic_core(o, at(0s)) {}

  time_point now() const noexcept override { return virtual_time::now(); }
  std::size_t pass() { return run_pass(time_point::max(), unlimited); }
  void drive() noexcept {
    detail::drive(*this, alarm_);
    driver_ended_.set();
  }

 private:
  /// What is waited for, and then has happened for good.
  class event {
   public:
    void set() {
      const std::lock_guard hold(mutex_);
      happened_ = true;
      has_happened_.notify_all();
    }
    void wait() {
      std::unique_lock hold(mutex_);
      while (!happened_) has_happened_.wait(hold);
    }

   private:
    explored_mutex mutex_{"event"};
    explored_condition has_happened_;
    bool happened_ = false;
  };

  void next_due_moved_earlier() noexcept override { alarm_.ring(); }

  Alarm alarm_;
  event driver_ended_;
};

}  // namespace rondo::test
