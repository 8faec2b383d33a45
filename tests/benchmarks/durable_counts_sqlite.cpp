#include <sqlite3.h>

#include <atomic>

#include "durable_counts.hpp"

namespace durable_workloads {
namespace {

std::atomic<std::uint64_t> statements{0}, rows{0};

// Called for every connection that is opened from now on, whoever opens it.
int watch(sqlite3* connection, char**, const void*) {
  sqlite3_trace_v2(
      connection, SQLITE_TRACE_STMT,
      [](unsigned, void*, void*, void*) {
        ++statements;
        return 0;
      },
      nullptr);
  sqlite3_update_hook(
      connection, [](void*, int, const char*, const char*, sqlite3_int64) { ++rows; }, nullptr);
  return SQLITE_OK;
}

}  // namespace

counts count_sqlite(place& at, const timetable& t) {
  const auto entry = reinterpret_cast<void (*)()>(&watch);
  statements = rows = 0;
  sqlite3_auto_extension(entry);
  const std::uint64_t turns = run_counted(at, t);
  sqlite3_cancel_auto_extension(entry);
  const auto each = [n = t.n](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(n);
  };
  // One statement and n of the row changes came from filling the table.
  const counts result{each(statements - 1), each(rows - t.n), each(turns)};
  at.clear();
  return result;
}

}  // namespace durable_workloads
