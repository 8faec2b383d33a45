#include <rondo/detail/canceller.hpp>

#include "scheduler/core.hpp"

namespace rondo::detail {

canceller::canceller(const scheduler& s) noexcept : core_(core_access::of(s)) {}

cancel_result canceller::cancel(timer_id id) const {
  const auto core = core_.lock();
  if (core == nullptr) return cancel_result::gone;
  [[maybe_unused]] const checked_call checked{*core, "cancel()"};
  return core->cancel(id);
}

}  // namespace rondo::detail
