// The offsets of a zone's clock from UTC.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "calendar/constant_offset.hpp"
#include "calendar/yearly_changes.hpp"

namespace rondo::detail {

/// A value that does not change.
class zone_offsets {
 public:
  /// Those of UTC.
  zone_offsets() = default;
  /// Reads the contents of a file in the format TZif (RFC 9636), versions 1 to 4. Throws std::runtime_error if they are
  /// none; the message continues "its file". Throws std::bad_alloc.
  explicit zone_offsets(std::string_view file);

  static bool is_file(std::string_view contents) noexcept { return contents.starts_with("TZif"); }

  /// O(log n) of the listed changes.
  constant_offset at(std::chrono::sys_seconds t) const;
  /// The period in which the clock first reaches or passes `local`: within it, or as it begins.
  constant_offset first_reaching(std::chrono::local_seconds local) const;

 private:
  struct change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset;  // from then on
  };
  class reader;

  std::chrono::seconds before_{};  // the first change
  std::vector<change> changes_;
  std::optional<yearly_changes> then_;  // after the last change
};

}  // namespace rondo::detail
