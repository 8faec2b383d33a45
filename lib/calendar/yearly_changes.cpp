#include "calendar/yearly_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace rondo::detail {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using std::chrono::year;

class yearly_changes::parser {
 public:
  explicit parser(std::string_view text) noexcept : rest_(text) {}

  bool at_end() const noexcept { return rest_.empty(); }
  bool is_at(char c) const noexcept { return rest_.starts_with(c); }

  void expect(bool holds) const {
    if (!holds) throw std::runtime_error("ends with a rule that is none of POSIX");
  }

  bool skip(char c) noexcept {
    if (!is_at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  int number(int least, int most) {
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    expect(digits >= 1 && digits <= 3);
    int value = 0;
    for (const char digit : rest_.substr(0, digits)) value = 10 * value + (digit - '0');
    rest_.remove_prefix(digits);
    expect(value >= least && value <= most);
    return value;
  }

  /// Its name does not matter.
  void skip_name() {
    static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const bool is_quoted = skip('<');
    const std::size_t end =
        is_quoted ? rest_.find('>') : std::min(rest_.find_first_not_of(letters), rest_.size());
    expect(end != std::string_view::npos && end >= 3);
    rest_.remove_prefix(end);
    if (is_quoted) skip('>');
  }

  seconds time(int most_hours) {
    const bool is_negative = skip('-');
    if (!is_negative) skip('+');
    seconds value = hours(number(0, most_hours));
    if (skip(':')) value += minutes(number(0, 59));
    if (skip(':')) value += seconds(number(0, 59));
    return is_negative ? -value : value;
  }

  change next_change() {
    expect(skip(','));
    change result{change::day_kind::of_year, 0, 0, 0, hours(2)};
    if (skip('M')) {
      result.kind = change::day_kind::weekday_of_month;
      result.month = number(1, 12);
      expect(skip('.'));
      result.week = number(1, 5);
      expect(skip('.'));
      result.day = number(0, 6);
    } else if (skip('J')) {
      result.kind = change::day_kind::julian;
      result.day = number(1, 365);
    } else {
      result.day = number(0, 365);
    }
    if (skip('/')) result.time = time(167);
    return result;
  }

 private:
  std::string_view rest_;
};

yearly_changes::yearly_changes(std::string_view text) {
  parser in(text);
  in.skip_name();
  standard_ = -in.time(24);  // POSIX counts westwards
  if (in.at_end()) return;
  in.skip_name();
  const seconds offset = in.is_at(',') ? standard_ + hours(1) : -in.time(24);
  const change begin = in.next_change();
  const change end = in.next_change();
  in.expect(in.at_end());
  summer_ = summer{offset, begin, end};
}

local_seconds yearly_changes::change::in(year y) const {
  using namespace std::chrono;
  const local_days first(y / January / 1);
  switch (kind) {
    case day_kind::julian:  // 29 February has no number
      return first + days(day - (y.is_leap() && day >= 60 ? 0 : 1)) + time;
    case day_kind::of_year:
      return first + days(day) + time;
    case day_kind::weekday_of_month:
      break;
  }
  const std::chrono::weekday wanted(static_cast<unsigned>(day));
  const auto in_month = y / std::chrono::month(static_cast<unsigned>(month));
  if (week == 5) return local_days(in_month / wanted[last]) + time;
  return local_days(in_month / wanted[static_cast<unsigned>(week)]) + time;
}

constant_offset yearly_changes::at(sys_seconds t) const {
  constant_offset result{sys_seconds::min(), sys_seconds::max(), standard_};
  if (!summer_) return result;
  // A later call wins, so a summer that ends as the next one begins never ends.
  const auto note = [&](sys_seconds moment, seconds offset) {
    if (moment > t) {
      result.end = std::min(result.end, moment);
    } else if (moment >= result.begin) {
      result.begin = moment;
      result.offset = offset;
    }
  };
  // A change may be some days outside its year. Those of two years before t are not after it.
  const year now = std::chrono::year_month_day(std::chrono::floor<days>(t)).year();
  for (int i = -2; i <= 2; ++i) {
    const year y = now + std::chrono::years(i);
    note(sys_seconds((summer_->end.in(y)-summer_->offset).time_since_epoch()), standard_);
    note(sys_seconds((summer_->begin.in(y)-standard_).time_since_epoch()), summer_->offset);
  }
  return result;
}

}  // namespace rondo::detail
