// Callables of the library that run later if an executor drops their job.
#pragma once

#include <concepts>
#include <memory>

#include <rondo/firing.hpp>

namespace rondo::detail {

/// Says which runs are reported, in place of the job, when an executor has dropped it.
class rejection {
 public:
  /// Puts the next one into `job`, which is the firing of the dropped job or what the last call has put there. Returns false
  /// if there are no more. May call user code.
  virtual bool next_rejected(firing& job) noexcept = 0;

 protected:
  ~rejection() = default;
};

template <class Held>
concept rejecting = requires(const Held& held) {
  { held.rejecting() } -> std::same_as<std::shared_ptr<rejection>>;
};

}  // namespace rondo::detail
