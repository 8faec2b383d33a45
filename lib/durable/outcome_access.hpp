// Access to what an outcome says, for dispatchers.
#pragma once

#include <string>

#include <rondo/durable.hpp>

namespace rondo::durable::detail {

struct outcome_access {
  static bool is_snoozed(const outcome& o) noexcept { return o.kind_ == outcome::kind::snoozed; }
  static bool is_dead(const outcome& o) noexcept { return o.kind_ == outcome::kind::dead; }
  static duration delay(const outcome& o) noexcept { return o.delay_; }
  static const std::string& reason(const outcome& o) noexcept { return o.reason_; }
};

}  // namespace rondo::durable::detail
