// Callables of the library that run later if an executor drops their job.
#pragma once

#include <concepts>
#include <functional>
#include <memory>

#include <rondo/firing.hpp>
#include <rondo/time.hpp>

namespace rondo::detail {

/// Says which runs are reported, in place of the job, when an executor has dropped it.
class rejection {
 public:
  using listener = std::function<bool(const firing&)>;

  /// Calls `report` with each of them, until it returns false. `job` is the firing of the dropped job, and `now` the
  /// scheduler's time. May call user code.
  virtual void report_rejected(firing job, time_point now, const listener& report) noexcept = 0;

 protected:
  ~rejection() = default;
};

template <class Held>
concept rejecting = requires(const Held& held) {
  { held.rejecting() } -> std::same_as<std::shared_ptr<rejection>>;
};

}  // namespace rondo::detail
