// What rondo-durable needs of calendars.
#pragma once

#include <optional>

#include <rondo/calendar.hpp>
#include <rondo/export.hpp>

#include "calendar/zoned_point.hpp"

namespace rondo::detail {

struct RONDO_EXPORT calendar_access {
  /// As calendar::next().
  static std::optional<zoned_point> next(const calendar& of, wall_time after);
  /// As calendar_rule::present().
  static zoned_point present(const calendar& of, const zoned_point& p);
};

}  // namespace rondo::detail
