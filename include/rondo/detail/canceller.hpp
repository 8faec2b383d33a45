// For what waits on a scheduler and may outlive it.
#pragma once

#include <memory>

#include <rondo/export.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

/// Cancels timers of a scheduler, at any time: while that is being destroyed, and when it is long since gone.
class RONDO_EXPORT canceller {
 public:
  explicit canceller(const scheduler&) noexcept;
  cancel_result cancel(timer_id) const;

 private:
  std::weak_ptr<core> core_;
};

}  // namespace rondo::detail
