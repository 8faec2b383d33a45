// Counts the statements and row changes that the engines need to run a task.
#pragma once

#include <cstdint>

#include "durable_workloads.hpp"

namespace durable_workloads {

struct counts {
  double statements = 0, rows = 0, transactions = 0;  // for each task
};

/// One dispatcher runs the tasks.
counts count_sqlite(place&, const timetable&);
counts count_postgresql(place&, const timetable&);

/// What both functions count: runs the tasks and returns the number of transactions.
inline std::uint64_t run_counted(place& at, const timetable& t) {
  fill(at, t);
  crew workers(at, 1);
  workers.wait_until([n = t.n](const crew::totals& all) { return all.completed >= n; });
  workers.stop();
  return workers.total().turns;
}

}  // namespace durable_workloads
