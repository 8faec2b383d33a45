// The changes of a zone's clock that recur each year.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "calendar/constant_offset.hpp"

namespace rondo::detail {

/// What a text such as "CET-1CEST,M3.5.0,M10.5.0/3" says, which ends the file of a zone: POSIX's TZ, with the extensions of
/// RFC 9636, 3.3.1.
class yearly_changes {
 public:
  /// Throws std::runtime_error, whose message continues "its file", if the text is none of these.
  explicit yearly_changes(std::string_view text);

  constant_offset at(std::chrono::sys_seconds t) const;

 private:
  struct change {
    enum class day_kind { julian, of_year, weekday_of_month };
    day_kind kind;
    int month, week, day;       // 1 to 12; 1 to 5, which is the last; J1 to J365, 0 to 365, or the weekday
    std::chrono::seconds time;  // of the day, by the clock before the change

    std::chrono::local_seconds in(std::chrono::year y) const;
  };
  struct summer {
    std::chrono::seconds offset;
    change begin, end;
  };
  class parser;

  std::chrono::seconds standard_;
  std::optional<summer> summer_;
};

}  // namespace rondo::detail
