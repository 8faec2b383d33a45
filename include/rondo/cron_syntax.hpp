// Whose cron expressions a call reads.
#pragma once

#include <cstdint>

namespace rondo {

/// What the fields of a cron expression mean. Tools agree on five fields, but not on a sixth, on `?`, on the number of
/// Sunday, or on what two day fields mean together, so an expression is never understood by the number of its fields alone.
/// At clock changes, Rondo's one rule holds in all syntaxes: see rondo::calendar.
enum class cron_syntax : std::uint8_t {
  /// cron(8): minute hour day month weekday.
  standard,
  /// As standard, with the second as the first of six fields: croner, cron-parser, node-cron, Azure Functions. (Where both day
  /// fields name days, a day must match both in node-cron and Azure: read these as spring.)
  seconds_first,
  /// Quartz: second minute hour day month weekday, and perhaps the year. Weekdays are 1-7, from Sunday. Exactly one of the two
  /// day fields is `?`.
  quartz,
  /// Spring: second minute hour day month weekday. A day must match both day fields.
  spring,
  /// Amazon EventBridge: minute hour day month weekday year, also as `cron(…)`. Weekdays are 1-7, from Sunday. Exactly one of the
  /// two day fields is `?`.
  eventbridge,
  /// Nomad: as standard; a sixth field is the year, and of seven the first is the second.
  year_last
};

}  // namespace rondo
