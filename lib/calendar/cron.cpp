#include "calendar/cron.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace rondo::detail {

namespace {

/// What a field may contain. Names denote the numbers from `first_name` on.
struct field {
  const char* what;
  unsigned smallest;
  unsigned largest;
  std::string_view names;  // of three letters each
  unsigned first_name;
};

constexpr std::array<field, 6> fields{{
    {"second", 0, 59, "", 0},
    {"minute", 0, 59, "", 0},
    {"hour", 0, 23, "", 0},
    {"day of the month", 1, 31, "", 0},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1},
    {"day of the week", 0, 7, "sunmontuewedthufrisat", 0},
}};

constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

class parser {
 public:
  explicit parser(const std::string& expression) : expression_(expression) {}

  calendar_rule rule() const {
    const std::vector<std::string> texts = split(expression_, " \t", true);
    if (!texts.empty() && texts[0].front() == '@')
      refuse("is a name, which is not supported: write its five fields");
    if (texts.size() == 1) refuse("has 1 field, not five or six");
    if (texts.size() != 5 && texts.size() != 6)
      refuse("has " + std::to_string(texts.size()) + " fields, not five or six");
    const std::size_t omitted = fields.size() - texts.size();
    std::array<std::uint64_t, fields.size()> sets{bit(0)};  // of five fields, none is for the seconds
    for (std::size_t i = omitted; i != fields.size(); ++i) sets[i] = set_of(fields[i], texts[i - omitted]);
    const auto is_restricted = [&](std::size_t i) { return texts[i - omitted].front() != '*'; };
    calendar_rule result;
    result.seconds = sets[0];
    result.minutes = sets[1];
    result.hours = static_cast<std::uint32_t>(sets[2]);
    result.month_days = static_cast<std::uint32_t>(sets[3]);
    result.months = static_cast<std::uint32_t>(sets[4]);
    result.weekdays = static_cast<std::uint32_t>((sets[5] | sets[5] >> 7) & 0x7fU);  // 7 is Sunday too
    result.either_day = is_restricted(3) && is_restricted(5);
    result.elapsed = result.hours == bit(24) - 1;
    if (!result.has_days()) refuse("matches no day");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("rondo: the cron expression " + quoted_text(expression_) + ' ' + why);
  }
  [[noreturn]] void refuse(const field& f, const std::string& text, const std::string& why) const {
    refuse(std::string("is wrong in its ") + f.what + ": " + quoted_text(text) + ' ' + why);
  }

  /// Splits the text at any of the separators. If `merge`, adjacent separators count as one, so no part is empty.
  static std::vector<std::string> split(const std::string& text, const char* separators, bool merge) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
      if (!merge || end != begin) parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return parts;
  }

  std::uint64_t set_of(const field& f, const std::string& text) const {
    std::uint64_t set = 0;
    for (const std::string& item : split(text, ",", false)) set |= item_of(f, item);
    return set;
  }

  /// Parses `*`, a value or a range, with an optional step.
  std::uint64_t item_of(const field& f, const std::string& item) const {
    const std::size_t slash = item.find('/');
    const std::string range = item.substr(0, slash);
    const std::size_t dash = range.find('-');
    const bool all = range == "*";
    if (slash != std::string::npos && !all && dash == std::string::npos)
      refuse(f, item, "has a step after a single value, not after * or a range");
    unsigned first = f.smallest;
    unsigned last = f.largest;
    if (!all) {
      first = value_of(f, range.substr(0, dash));
      last = dash == std::string::npos ? first : value_of(f, range.substr(dash + 1));
      if (f.largest == 7 && last == 0 && first != 0) last = 7;  // fri-sun
      if (last < first) refuse(f, item, "goes backwards");
    } else if (f.largest == 7) {
      last = 6;  // so that a step does not count Sunday twice
    }
    const unsigned step = slash == std::string::npos ? 1 : step_of(f, item.substr(slash + 1));
    std::uint64_t set = 0;
    for (unsigned n = first; n <= last; n += step) set |= bit(n);
    return set;
  }

  unsigned value_of(const field& f, const std::string& text) const {
    if (const auto named = name_of(f, text); named) return *named;
    const auto number = number_of(text);
    if (!number) refuse(f, text, f.names.empty() ? "is not a number" : "is neither a number nor a name");
    if (*number < f.smallest || *number > f.largest) refuse(f, text, "is not in " + range_of(f.smallest, f));
    return *number;
  }

  unsigned step_of(const field& f, const std::string& text) const {
    const auto number = number_of(text);
    if (!number) refuse(f, text, "is not a number");
    if (*number < 1 || *number > f.largest) refuse(f, text, "is not a step in " + range_of(1, f));
    return *number;
  }

  static std::string range_of(unsigned smallest, const field& f) {
    return std::to_string(smallest) + '-' + std::to_string(f.largest);
  }

  static std::optional<unsigned> name_of(const field& f, const std::string& text) {
    if (text.size() != 3) return std::nullopt;
    std::string lower = text;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    for (std::size_t i = 0; i < f.names.size(); i += 3)
      if (f.names.substr(i, 3) == lower) return f.first_name + static_cast<unsigned>(i / 3);
    return std::nullopt;
  }

  /// Parses one to four decimal digits.
  static std::optional<unsigned> number_of(const std::string& text) {
    if (text.empty() || text.size() > 4) return std::nullopt;
    unsigned number = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + static_cast<unsigned>(c - '0');
    }
    return number;
  }

  const std::string& expression_;
};

}  // namespace

calendar_rule parse_cron(const std::string& expression) { return parser(expression).rule(); }

}  // namespace rondo::detail
