#include "calendar/zone_offsets.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace rondo::detail {

using std::chrono::hours;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

class zone_offsets::reader {
 public:
  explicit reader(std::string_view file) noexcept : rest_(file) {}

  /// Of one of the two parts of a file, the second of which has 64 bits for a time.
  struct header {
    char version;
    std::uint64_t utc_marks, standard_marks, leap_seconds, changes, types, name_bytes;
  };

  header next_header() {
    static constexpr std::size_t reserved = 15;
    if (!is_file(take(4))) throw std::runtime_error("is not one of a zone");
    header h{};
    h.version = take(1)[0];
    take(reserved);
    for (auto* count :
         {&h.utc_marks, &h.standard_marks, &h.leap_seconds, &h.changes, &h.types, &h.name_bytes})
      *count = static_cast<std::uint32_t>(number(4));
    return h;
  }

  void skip_part(const header& h, std::size_t time_size) {
    take((time_size + 1) * h.changes + 6 * h.types);
    skip_rest_of_part(h, time_size);
  }

  void read_part(const header& h, std::size_t time_size, zone_offsets& into) {
    if (h.leap_seconds != 0) throw std::runtime_error("counts leap seconds");
    reader times(take(time_size * h.changes));
    const std::string_view indices = take(h.changes);
    reader types(take(6 * h.types));
    std::vector<seconds> offsets;
    for (std::uint64_t i = 0; i < h.types; ++i) {
      offsets.emplace_back(types.number(4));
      types.take(2);  // whether it is summer, and the name
    }
    if (offsets.empty() ||
        std::ranges::any_of(offsets, [](seconds s) { return s <= -hours(48) || s >= hours(48); }))
      throw std::runtime_error("has no offset of a zone");
    into.before_ = offsets.front();
    for (const char index : indices) {
      const auto type = static_cast<unsigned char>(index);
      const sys_seconds at(seconds(times.number(time_size)));
      if (type >= offsets.size() || (!into.changes_.empty() && into.changes_.back().at >= at))
        throw std::runtime_error("has changes in disorder");
      into.changes_.push_back({at, offsets[type]});
    }
    skip_rest_of_part(h, time_size);
  }

  std::string_view line() {
    if (take(1) != "\n" || rest_.find('\n') == std::string_view::npos) refuse_end();
    return take(rest_.find('\n'));
  }

 private:
  [[noreturn]] static void refuse_end() { throw std::runtime_error("ends too early"); }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse_end();
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }

  void skip_rest_of_part(const header& h, std::size_t time_size) {
    take(h.name_bytes + (time_size + 4) * h.leap_seconds + h.standard_marks + h.utc_marks);
  }

  /// Big-endian, in two's complement.
  std::int64_t number(std::size_t size) {
    const std::string_view bytes = take(size);
    std::uint64_t value = (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
    return static_cast<std::int64_t>(value);
  }

  std::string_view rest_;
};

zone_offsets::zone_offsets(std::string_view file) {
  reader in(file);
  const reader::header first = in.next_header();
  if (first.version == '\0') {
    in.read_part(first, 4, *this);
    return;
  }
  in.skip_part(first, 4);
  in.read_part(in.next_header(), 8, *this);
  const std::string_view rule = in.line();
  if (!rule.empty()) then_.emplace(rule);
}

constant_offset zone_offsets::at(sys_seconds t) const {
  const auto next = std::ranges::upper_bound(changes_, t, {}, &change::at);
  constant_offset result{sys_seconds::min(), sys_seconds::max(), before_};
  if (next != changes_.begin()) {
    result.begin = std::prev(next)->at;
    result.offset = std::prev(next)->offset;
  }
  if (next != changes_.end()) {
    result.end = next->at;
  } else if (then_) {
    const sys_seconds last = result.begin;
    result = then_->at(t);
    result.begin = std::max(result.begin, last);
  }
  return result;
}

constant_offset zone_offsets::first_reaching(local_seconds local) const {
  const sys_seconds as_utc(local.time_since_epoch());
  constant_offset result = at(as_utc - hours(48));
  while (as_utc - result.offset >= result.end) result = at(result.end);
  return result;
}

}  // namespace rondo::detail
