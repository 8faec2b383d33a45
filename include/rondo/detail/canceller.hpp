// Cancels timers of a scheduler that may have been destroyed.
#pragma once

#include <memory>

#include <rondo/export.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

/// May be used at any time, even while the scheduler is being destroyed and afterwards.
class RONDO_EXPORT canceller {
 public:
  explicit canceller(const scheduler&) noexcept;
  cancel_result cancel(timer_id) const;

 private:
  std::weak_ptr<core> core_;
};

}  // namespace rondo::detail
