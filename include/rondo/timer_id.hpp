// The identity of a timer.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <rondo/export.hpp>

namespace rondo {

namespace detail {
struct timer_id_access;

/// What an id consists of.
struct timer_id_parts {
  std::uint32_t scheduler = 0;  // 0: identifies no timer
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;

  friend constexpr bool operator==(const timer_id_parts&, const timer_id_parts&) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(const timer_id_parts&, const timer_id_parts&) noexcept =
      default;  // NOLINT(modernize-use-nullptr): the comparisons are the compiler's
};
}  // namespace detail

/// Identifies one timer of one scheduler. Ids are never reused: after its timer has ended, an id identifies no other
/// timer in this scheduler or in any other of the process. A default-constructed id identifies no timer. Ids are
/// trivially copyable, ordered and hashable; they may be kept, compared and passed to any scheduler at any time.
class timer_id {
 public:
  /// Identifies no timer.
  constexpr timer_id() noexcept = default;
  /// Whether both identify the same timer, or both identify none.
  friend constexpr bool operator==(const timer_id&, const timer_id&) noexcept = default;
  /// A total order, for sorted containers: it says nothing about when the timers were scheduled or are due. An id that
  /// identifies no timer comes first.
  friend constexpr std::strong_ordering operator<=>(const timer_id&, const timer_id&) noexcept =
      default;  // NOLINT(modernize-use-nullptr): the comparisons are the compiler's

  /// Three numbers, such as "1.7.12": equal ids have equal texts, and different ids different ones. Returns "no timer"
  /// for an id that identifies none. Throws std::bad_alloc.
  friend RONDO_EXPORT std::string to_string(const timer_id& id);

 private:
  friend struct detail::timer_id_access;
  friend struct std::hash<timer_id>;

  detail::timer_id_parts parts_;
};
static_assert(sizeof(timer_id) <= 16);

RONDO_EXPORT std::string to_string(const timer_id& id);

namespace detail {
struct timer_id_access {
  static constexpr timer_id make(std::uint32_t scheduler, std::uint32_t slot,
                                 std::uint64_t generation) noexcept {
    timer_id id;
    id.parts_ = {scheduler, slot, generation};
    return id;
  }
  static constexpr const timer_id_parts& parts(const timer_id& id) noexcept { return id.parts_; }
};
}  // namespace detail

}  // namespace rondo

/// Makes timer ids usable as keys of unordered containers.
template <>
struct std::hash<rondo::timer_id> {
  /// Equal ids have equal hashes; all bits are well mixed.
  std::size_t operator()(const rondo::timer_id& id) const noexcept {
    const auto& [scheduler, slot, generation] = id.parts_;
    const std::uint64_t place = (std::uint64_t{scheduler} << 32) | slot;
    const std::uint64_t mixed = (place ^ (generation * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));  // low bits of a product depend on low bits only
  }
};
