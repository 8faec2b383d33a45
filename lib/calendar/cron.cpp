#include "calendar/cron.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "calendar/cron_dialects.hpp"

namespace rondo::detail {

namespace {

/// What a field may contain. Names denote the numbers from `first_name` on.
struct field {
  const char* what;
  unsigned smallest;
  unsigned largest;
  std::string_view names = {};  // of three letters each
  unsigned first_name = 0;
};

constexpr field second_field{"second", 0, 59};
constexpr field minute_field{"minute", 0, 59};
constexpr field hour_field{"hour", 0, 23};
constexpr field month_day_field{"day of the month", 1, 31};
constexpr field month_field{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1};

struct macro {
  std::string_view name;
  const char* means;
};
constexpr std::array<macro, 7> macros{{{"@hourly", "0 * * * *"},
                                       {"@daily", "0 0 * * *"},
                                       {"@midnight", "0 0 * * *"},
                                       {"@weekly", "0 0 * * 0"},
                                       {"@monthly", "0 0 1 * *"},
                                       {"@yearly", "0 0 1 1 *"},
                                       {"@annually", "0 0 1 1 *"}}};

constexpr unsigned all_weekdays = 0x7f;

/// The numbers that a field names, less a base.
using numbers = std::bitset<year_set::count>;

/// Splits the text at any of the separators. If `merge`, adjacent separators count as one, so no part is empty.
std::vector<std::string> split(const std::string& text, const char* separators, bool merge) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (!merge || end != begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string in_capitals(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

/// Parses one to four decimal digits.
std::optional<unsigned> number_of(const std::string& text) {
  if (text.empty() || text.size() > 4) return std::nullopt;
  unsigned number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  return number;
}

/// The names of the dialects for which `has` holds, as "cron_syntax::spring or year_last".
template <class Has>
std::string names_of_dialects(Has has) {
  std::string names;
  for (const cron_dialect& d : cron_dialects)
    if (has(d)) names += (names.empty() ? "cron_syntax::" : ", ") + std::string(d.name);
  if (const auto last = names.rfind(", "); last != std::string::npos) names.replace(last, 2, " or ");
  return names;
}

bool has_layout(const cron_dialect& d, std::size_t fields) {
  return std::any_of(d.layouts.begin(), d.layouts.begin() + d.layout_count,
                     [&](const cron_layout& l) { return l.fields() == fields; });
}

class parser {
 public:
  parser(const std::string& expression, cron_syntax syntax)
      : expression_(expression),
        dialect_(dialect_of(syntax)),
        weekday_field_{"day of the week", dialect_.sunday, 7, "sunmontuewedthufrisat", dialect_.sunday} {}

  calendar_rule rule() const {
    std::vector<std::string> texts = split(std::string(without_cron(expression_, dialect_)), " \t", true);
    cron_layout layout;
    if (texts.size() == 1 && texts[0].front() == '@')
      texts = split(meaning_of(texts[0]), " ", true);
    else
      layout = layout_of(texts);
    calendar_rule result;
    auto text = texts.begin();
    result.seconds = layout.second_first ? numbers_of(second_field, *text++).to_ullong() : 1;
    const std::string& minutes = *text++;
    const std::string& hours = *text++;
    result.minutes = numbers_of(minute_field, minutes).to_ullong();
    result.hours = static_cast<std::uint32_t>(numbers_of(hour_field, hours).to_ulong());
    const std::string& month_days = *text++;
    result.months = static_cast<std::uint32_t>(numbers_of(month_field, *text++).to_ulong());
    set_days(month_days, *text++, result);
    if (layout.year_last && *text != "*") result.years = years_of(*text);
    result.elapsed = minutes.front() == '*' || hours.front() == '*' || result.hours == (1U << 24) - 1;
    if (!result.has_days()) refuse("matches no day");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("rondo: the cron expression " + quoted_text(expression_) + ' ' + why);
  }
  [[noreturn]] void refuse(const field& f, const std::string& text, const std::string& why) const {
    refuse(std::string("is wrong in its ") + f.what + ": " + quoted_text(text) + ' ' + why + hint(f, text));
  }

  /// What the writer may have had in mind.
  std::string hint(const field& f, const std::string& text) const {
    if (&f != &month_day_field && &f != &weekday_field_) return "";
    if (!dialect_.has_question && text == "?")
      return ": it is of " + names_of_dialects([](const cron_dialect& d) { return d.has_question; });
    constexpr std::string_view letters = "LlWw";
    const bool special = text.find('#') != std::string::npos ||
                         (!text.empty() && (letters.find(text.back()) != std::string_view::npos ||
                                            in_capitals(text).front() == 'L'));
    if (!dialect_.has_last && special)
      return ": L, W and # are of " + names_of_dialects([](const cron_dialect& d) { return d.has_last; });
    return "";
  }

  std::string meaning_of(const std::string& name) const {
    if (name == "@reboot")
      refuse("is no calendar: at the start of the program, schedule a timer that runs once");
    const auto* const m = std::ranges::find_if(macros, [&](const macro& each) { return each.name == name; });
    if (m == macros.end()) {
      std::string known;
      for (const macro& each : macros) known += (known.empty() ? "" : ", ") + std::string(each.name);
      refuse("is none of the names " + known);
    }
    if (!dialect_.has_macros)
      refuse("is a name, which cron_syntax::" + std::string(dialect_.name) + " does not have");
    return m->means;
  }

  cron_layout layout_of(const std::vector<std::string>& texts) const {
    if (!texts.empty() && texts[0] == "@every") refuse("is no calendar: schedule a periodic timer, every()");
    if (!texts.empty() && (texts[0].starts_with("CRON_TZ=") || texts[0].starts_with("TZ=")))
      refuse("has a zone in it: that is the second argument of cron()");
    std::string expected;
    for (std::size_t i = 0; i != dialect_.layout_count; ++i) {
      const cron_layout& l = dialect_.layouts.at(i);
      if (l.fields() == texts.size()) return l;
      expected += (expected.empty() ? "" : " or ") + std::to_string(l.fields());
    }
    const auto count = std::to_string(texts.size());
    const auto others = names_of_dialects([&](const cron_dialect& d) { return has_layout(d, texts.size()); });
    refuse("has " + count + (texts.size() == 1 ? " field" : " fields") + ", not " + expected +
           " as cron_syntax::" + std::string(dialect_.name) + " has" +
           (others.empty() ? "" : ": name the syntax that is meant, " + others));
  }

  numbers numbers_of(const field& f, const std::string& text, unsigned base = 0) const {
    numbers set;
    for (const std::string& item : split(text, ",", false)) set |= item_of(f, item, base);
    return set;
  }

  year_set years_of(const std::string& text) const {
    const field years{"year", year_set::first, dialect_.last_year};
    return {numbers_of(years, text, year_set::first)};
  }

  void set_days(const std::string& month_days, const std::string& weekdays, calendar_rule& to) const {
    if (dialect_.is_quartz) {
      refuse_special_in_list(month_day_field, month_days);
      refuse_special_in_list(weekday_field_, weekdays);
    }
    const bool any_month_day = dialect_.has_question && month_days == "?";
    const bool any_weekday = dialect_.has_question && weekdays == "?";
    if (dialect_.days == cron_days::one_is_question && any_month_day == any_weekday)
      refuse("must have ? in exactly one of its two day fields, as in cron_syntax::" +
             std::string(dialect_.name));
    if (any_month_day)
      to.month_days = ~std::uint32_t{0};
    else
      for (const std::string& item : split(month_days, ",", false)) add_month_day(item, to);
    if (any_weekday)
      to.weekdays = all_weekdays;
    else
      for (const std::string& item : split(weekdays, ",", false)) add_weekday(item, to);
    const auto is_restricted = [&](const std::string& text) {
      return dialect_.days == cron_days::either_unless_star ? text.front() != '*'
                                                            : text != "*" && text != "?";
    };
    const bool may_be_either =
        dialect_.days == cron_days::either_unless_star || dialect_.days == cron_days::either_unless_whole;
    to.either_day = may_be_either && is_restricted(month_days) && is_restricted(weekdays);
  }

  /// Quartz refuses some of these lists, and reads others as something else than they say.
  void refuse_special_in_list(const field& f, const std::string& text) const {
    const std::string items = ',' + in_capitals(text) + ',';
    const bool special = items.find('#') != std::string::npos || items.find("L,") != std::string::npos ||
                         items.find(",L") != std::string::npos || items.find("W,") != std::string::npos;
    if (special && text.find(',') != std::string::npos) refuse(f, text, "has L, W or # beside others");
  }

  /// L, L-n, LW, L-nW, nW, or numbers.
  void add_month_day(const std::string& item, calendar_rule& to) const {
    const std::string text = in_capitals(item);
    const bool workday = text.ends_with('W');
    const bool from_last = text.starts_with('L');
    if (!dialect_.has_last || (!workday && !from_last)) {
      to.month_days |= static_cast<std::uint32_t>(numbers_of(month_day_field, item).to_ulong());
      return;
    }
    const std::string rest =
        text.substr(from_last ? 1 : 0, text.size() - (workday ? 1 : 0) - (from_last ? 1 : 0));
    if (!from_last) {
      to.special.workdays |= 1U << value_of(month_day_field, rest);
      return;
    }
    const auto before = rest.empty() ? 0 : rest.front() == '-' ? number_of(rest.substr(1)) : std::nullopt;
    if (!before || *before > 30) refuse(month_day_field, item, "is not L, L-n, LW or nW, with n up to 30");
    (workday ? to.special.last_workdays : to.special.before_last) |= 1U << *before;
  }

  /// L, dL, d#n, or numbers.
  void add_weekday(const std::string& item, calendar_rule& to) const {
    const auto hash = item.find('#');
    if (dialect_.has_last && hash != std::string::npos) {
      const auto nth = number_of(item.substr(hash + 1));
      if (!nth || *nth < 1 || *nth > 5) refuse(weekday_field_, item, "does not have 1 to 5 after #");
      to.special.nth_weekdays |= std::uint64_t{1} << (8 * weekday_of(item.substr(0, hash)) + *nth);
    } else if (dialect_.has_last_of_week && in_capitals(item) == "L") {
      to.weekdays |= 1U << 6U;
    } else if (dialect_.has_last && item.size() > 1 && in_capitals(item).ends_with('L')) {
      to.special.last_weekdays |= 1U << weekday_of(item.substr(0, item.size() - 1));
    } else {
      const auto set = numbers_of(weekday_field_, item, dialect_.sunday).to_ulong();
      to.weekdays |= static_cast<std::uint32_t>(set | set >> 7) & all_weekdays;
    }
  }

  unsigned weekday_of(const std::string& text) const {
    return (value_of(weekday_field_, text) - dialect_.sunday) % 7;
  }

  struct span {
    unsigned first, last;
  };

  /// Parses `*`, a value or a range, with an optional step.
  numbers item_of(const field& f, const std::string& item, unsigned base) const {
    const std::size_t slash = item.find('/');
    const bool has_step = slash != std::string::npos;
    if (has_step && dialect_.is_quartz && item.find_first_of("0123456789*") != 0)
      refuse(f, item, "has a step after a name, which Quartz ignores");
    const span all = span_of(f, item, item.substr(0, slash), has_step);
    const unsigned step = has_step ? step_of(f, item.substr(slash + 1)) : 1;
    numbers set;
    for (unsigned n = all.first; n <= all.last; n += step)
      set.set((n > f.largest ? n - (f.largest - f.smallest + 1) : n) - base);
    return set;
  }

  /// A range that goes round ends beyond the largest number.
  span span_of(const field& f, const std::string& item, const std::string& range, bool has_step) const {
    const bool seven_is_sunday = &f == &weekday_field_ && dialect_.sunday == 0;
    span all{f.smallest, f.largest};
    if (seven_is_sunday)  // * does not count Sunday twice
      all = {dialect_.first_of_all, 6 + dialect_.first_of_all};
    if (range == "*") return all;
    const std::size_t dash = range.find('-');
    const unsigned first = value_of(f, range.substr(0, dash));
    if (dash == std::string::npos) {
      if (!has_step) return {first, first};
      if (!dialect_.has_step_of_value)
        refuse(f, item, "has a step after a single value, not after * or a range");
      return {first, std::max(first, all.last)};
    }
    const unsigned last = value_of(f, range.substr(dash + 1));
    if (first <= last) return {first, last};
    if (seven_is_sunday && last == 0) return {first, 7};  // fri-sun
    if (seven_is_sunday && first == 7 && dialect_.backwards == backward_range::from_sunday_7)
      return {0, last};
    if (dialect_.backwards == backward_range::goes_round && f.largest < year_set::first)
      return {first, last + f.largest - f.smallest + 1};
    refuse(f, item, "goes backwards");
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
    if (*number < 1 || (*number > f.largest && !dialect_.has_large_steps))
      refuse(f, text, "is not a step in " + range_of(1, f));
    return *number;
  }

  static std::string range_of(unsigned smallest, const field& f) {
    return std::to_string(smallest) + '-' + std::to_string(f.largest);
  }

  static std::optional<unsigned> name_of(const field& f, const std::string& text) {
    if (text.size() != 3) return std::nullopt;
    const std::string capitals = in_capitals(text);
    for (std::size_t i = 0; i < f.names.size(); i += 3)
      if (in_capitals(std::string(f.names.substr(i, 3))) == capitals)
        return f.first_name + static_cast<unsigned>(i / 3);
    return std::nullopt;
  }

  const std::string& expression_;
  const cron_dialect& dialect_;
  const field weekday_field_;
};

}  // namespace

calendar_rule parse_cron(const std::string& expression, cron_syntax syntax) {
  return parser(expression, syntax).rule();
}

}  // namespace rondo::detail
