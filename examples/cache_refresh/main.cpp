// Keeps a cache fresh ahead of its expiry, with one Rondo timer.
//
// To be copied:
//   refreshing_cache   the cache (and refreshing_cache_core); refresh_policy: when it loads a value again
//
// The program around it, in the order in which the data flows:
//   options      the command line
//   origin       where the true values are (origins/: a folder, SQLite, PostgreSQL, HTTP); chaos: it misbehaves
//   loader       threads that ask the origin for what the cache wants to load
//   readers      read through the cache (zipf: which keys), and judge what they got
//   writer       changes values at the origin, and enters each change in the
//   ledger       which knows when each value was superseded
//   station      all of these with a timer: one run. measured, landings: what they count
//   snapshot     all figures at one moment: display shows them while it runs, summary at the end, web/ in a browser
//   comparison   three stations, one after another, and comparison_chart
// What other examples have as well is in ../common.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "common/interrupt.hpp"
#include "comparison.hpp"
#include "display.hpp"
#include "options.hpp"
#include "station.hpp"
#include "summary.hpp"
#ifdef RONDO_EXAMPLE_WEB
#include "web/web_server.hpp"
#endif

namespace cache_refresh {
namespace {

using clock = std::chrono::steady_clock;

#ifdef RONDO_EXAMPLE_WEB
std::unique_ptr<web_server> listen(const options& chosen, const station& shown) {
  if (chosen.listen.empty()) return nullptr;
  auto server = std::make_unique<web_server>(
      chosen.listen, [&shown] { return shown.look(); }, [&shown] { return shown.wheel(); },
      chosen.stale_limit);
  fmt::print("Listening on {}\n", server->url());
  return server;
}
#else
std::nullptr_t listen(const options& chosen, const station&) {
  if (!chosen.listen.empty())
    throw std::runtime_error("--listen: this program was built without cpp-httplib and nlohmann-json");
  return nullptr;
}
#endif

void run(const options& chosen, origin& from, const std::vector<std::string>& names,
         common::interrupt& interrupted) {
  const zipf popular(names.size(), chosen.skewed);
  station run(chosen, from, names, popular);
  [[maybe_unused]] const auto page = listen(chosen, run);
  std::fflush(stdout);

  display display(chosen.plain);
  if (display.in_place()) interrupted.read_keys();
  run.start();
  const clock::time_point start = clock::now();
  const clock::time_point end =
      chosen.seconds == 0 ? clock::time_point::max() : start + std::chrono::seconds(chosen.seconds);
  clock::time_point next = start;
  for (bool over = false; !over;) {
    next += display.interval();
    over = interrupted.wait_until(std::min(next, end)) || clock::now() >= end;
    display.show(run.look());
  }
  run.stop();
  print_summary(run.look(), run.compare(), run.last_error());
}

void compare(const options& chosen, origin& from, const std::vector<std::string>& names,
             const common::interrupt& interrupted) {
  const comparison all = compare_modes(chosen, from, names, interrupted);
  print(all);
  if (!chosen.csv.empty()) write_csv(all, chosen.csv);
  if (!chosen.svg.empty()) write_svg(all, chosen.svg);
}

void run(const options& chosen, common::interrupt& interrupted) {
  const std::unique_ptr<origin> from = open_origin(chosen.origin);
  const std::vector<std::string> names = from->keys(chosen.keys);
  if (names.empty()) throw origin_error(from->name() + ": holds no keys");
  fmt::print("Origin: {}, {} keys; seed {}\n", from->name(), names.size(), chosen.seed);
  std::fflush(stdout);
  if (chosen.compare) {
    compare(chosen, *from, names, interrupted);
  } else {
    run(chosen, *from, names, interrupted);
  }
}

}  // namespace
}  // namespace cache_refresh

int main(int argc, char** argv) {
  common::interrupt interrupted;
  const auto [chosen, exit_status] = cache_refresh::read_command_line(argc, argv);
  if (exit_status) return *exit_status;
  try {
    cache_refresh::run(chosen, interrupted);
  } catch (const std::exception& bad) {
    fmt::print(stderr, "cache_refresh: {}\n", bad.what());
    return 2;
  }
  return 0;
}
