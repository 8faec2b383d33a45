// What the syntaxes of cron expressions have.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <rondo/cron_syntax.hpp>

namespace rondo::detail {

/// Which fields an expression has beside the minute, the hour, the day of the month, the month and the day of the week.
struct cron_layout {
  bool second_first = false;
  bool year_last = false;

  std::size_t fields() const noexcept { return 5U + (second_first ? 1U : 0U) + (year_last ? 1U : 0U); }
};

/// When a day matches.
enum class cron_days {
  either_unless_star,   ///< in either field, but in both if one begins with *
  either_unless_whole,  ///< in either field, but in both if one is * or ?
  both,
  one_is_question  ///< exactly one field is ?, and the other one counts
};

/// What a range means whose first value is greater than its last.
enum class backward_range { error, from_sunday_7, goes_round };

/// What a syntax does not have is false or 0.
struct cron_dialect {
  std::string_view name;
  std::array<cron_layout, 3> layouts;
  std::size_t layout_count = 1;
  unsigned sunday = 0;        ///< its number; if that is 0, 7 is Sunday, too
  unsigned first_of_all = 0;  ///< the day of the week from which * counts the days
  cron_days days = cron_days::either_unless_star;
  backward_range backwards = backward_range::error;
  bool is_quartz = false;          ///< what Quartz reads as something else is refused
  bool has_cron_around = false;    ///< the expression may be in cron(…)
  bool has_question = false;       ///< ? in the day fields: as *
  bool has_last = false;           ///< L, L-n, LW, nW, dL and d#n
  bool has_last_of_week = false;   ///< L alone as the day of the week: Saturday
  bool has_step_of_value = false;  ///< a/n: from a on
  bool has_large_steps = false;    ///< a step beyond the range: only the first value
  bool has_macros = false;         ///< @daily and the like
  unsigned last_year = 0;
};

constexpr cron_layout just_five{};
constexpr cron_layout with_second{true, false};
constexpr cron_layout with_year{false, true};
constexpr cron_layout with_both{true, true};

/// In the order of cron_syntax.
constexpr std::array<cron_dialect, 6> cron_dialects{
    {{.name = "standard", .layouts = {just_five}, .has_large_steps = true, .has_macros = true},
     {.name = "seconds_first", .layouts = {with_second}, .has_large_steps = true, .has_macros = true},
     {.name = "quartz",
      .layouts = {with_second, with_both},
      .layout_count = 2,
      .sunday = 1,
      .days = cron_days::one_is_question,
      .backwards = backward_range::goes_round,
      .is_quartz = true,
      .has_question = true,
      .has_last = true,
      .has_last_of_week = true,
      .has_step_of_value = true,
      .last_year = 2099},
     {.name = "spring",
      .layouts = {with_second},
      .first_of_all = 1,
      .days = cron_days::both,
      .backwards = backward_range::from_sunday_7,
      .has_question = true,
      .has_last = true,
      .has_step_of_value = true,
      .has_large_steps = true,
      .has_macros = true},
     {.name = "eventbridge",
      .layouts = {with_year},
      .sunday = 1,
      .days = cron_days::one_is_question,
      .has_cron_around = true,
      .has_question = true,
      .has_last = true,
      .has_last_of_week = true,
      .has_step_of_value = true,
      .last_year = 2199},
     {.name = "year_last",
      .layouts = {just_five, with_year, with_both},
      .layout_count = 3,
      .days = cron_days::either_unless_whole,
      .has_question = true,
      .has_last = true,
      .has_step_of_value = true,
      .has_large_steps = true,
      .has_macros = true,
      .last_year = 2099}}};

/// The expression, out of the cron(…) that it may be in.
inline std::string_view without_cron(std::string_view expression, const cron_dialect& dialect) {
  constexpr std::string_view opens = "cron(";
  const auto begin = expression.find_first_not_of(" \t");
  const auto end = expression.find_last_not_of(" \t");
  if (!dialect.has_cron_around || begin == std::string_view::npos || expression[end] != ')' ||
      !expression.substr(begin).starts_with(opens))
    return expression;
  return expression.substr(begin + opens.size(), end - begin - opens.size());
}

/// Throws std::invalid_argument for a value that is none of cron_syntax.
inline const cron_dialect& dialect_of(cron_syntax s) {
  const auto nth = static_cast<std::size_t>(s);
  if (nth >= cron_dialects.size())
    throw std::invalid_argument("rondo: there is no cron_syntax " + std::to_string(nth));
  return cron_dialects[nth];
}

}  // namespace rondo::detail
