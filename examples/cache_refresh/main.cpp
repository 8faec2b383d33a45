// Keeps a cache of records fresh ahead of their expiry, with one Rondo timer.
//
// The components, in the order in which the data flows:
//   options      the command line
//   catalogue    the machine's package records, read once into the
//   origin       an SQLite database, which has the true values;
//   writer       changes rows there, as editors would, and enters every change in the
//   ledger       which knows when each version was superseded
//   refresher    loads from there into the cache, timed by Rondo (refresh_policy: when, worker_pool: where)
//   cache        what readers get
//   readers      read, and judge by the ledger how far behind the origin a value was
//   metrics      counters of all of them; snapshot: all counters at one moment
//   display      shows it while it runs, summary at the end
// What other examples have as well is in ../common.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "display.hpp"
#include "common/interrupt.hpp"
#include "options.hpp"
#include "readers.hpp"
#include "summary.hpp"
#include "writer.hpp"

namespace cache_refresh {
namespace {

using clock = std::chrono::steady_clock;

std::vector<row> open_rows(const options& chosen, origin_reader& origin, bool filled) {
  std::vector<row> rows = origin.list(chosen.keys);
  if (rows.empty()) throw sqlite::error("holds no rows");
  fmt::print("Origin: {}, {}, {} rows; seed {}\n", chosen.database.string(),
             filled ? "filled from " + chosen.catalogue.string() : "as it was left", rows.size(),
             chosen.seed);
  return rows;
}

void run(const options& chosen, const common::interrupt& interrupted) {
  const bool filled = prepare_origin(chosen.database, chosen.catalogue, chosen.seed);
  origin_reader origin(chosen.database);
  const std::vector<row> rows = open_rows(chosen, origin, filled);

  // Each thread has its own random seed.
  const std::uint64_t seed = chosen.seed;
  metrics counted;
  ledger ledger(rows);
  cache cache(rows.size());
  const clock::time_point start = clock::now();
  refresher refresher({chosen.database, chosen.workers, chosen.fail_percent, seed}, rows, cache, counted);
  readers readers({chosen.readers, chosen.reads, chosen.skewed, seed + 1000}, cache, refresher, ledger,
                  counted);
  writer writer({chosen.database, chosen.edits, seed + 2000}, rows, ledger, counted);

  display display(chosen.plain);
  const clock::time_point end =
      chosen.seconds == 0 ? clock::time_point::max() : start + std::chrono::seconds(chosen.seconds);
  clock::time_point next = start;
  for (bool over = false; !over;) {
    next += display.interval();
    over = interrupted.wait_until(std::min(next, end)) || clock::now() >= end;
    display.show(take_snapshot(clock::now() - start, cache, counted, refresher));
  }

  const auto elapsed = clock::now() - start;
  readers.stop();
  writer.stop();
  refresher.stop();
  print_summary(take_snapshot(elapsed, cache, counted, refresher), compare(rows, cache, ledger, origin));
}

}  // namespace
}  // namespace cache_refresh

int main(int argc, char** argv) {
  const common::interrupt interrupted;
  const auto [chosen, exit_status] = cache_refresh::read_command_line(argc, argv);
  if (exit_status) return *exit_status;
  try {
    cache_refresh::run(chosen, interrupted);
  } catch (const sqlite::error& bad) {
    fmt::print(stderr, "cache_refresh: {}: {}\n", chosen.database.string(), bad.what());
    return 2;
  } catch (const std::exception& bad) {
    fmt::print(stderr, "cache_refresh: {}\n", bad.what());
    return 2;
  }
  return 0;
}
