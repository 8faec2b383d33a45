// Keeps a cache fresh ahead of expiry, with one Rondo timer.
//
// Made to be copied:
//   refreshing_cache   the cache, with refreshing_cache_core and _parts; refresh_policy: when it reloads a value
//
// The program around it, in the order in which the data flows:
//   options      the command line
//   origin       has the true values (origins/: a folder, SQLite, PostgreSQL, HTTP; chaos makes it misbehave)
//   loader       threads that ask the origin for what the cache wants to load
//   users        readers, which read through the cache and record how good the values were; a writer, which changes
//                values at the origin; and a ledger, which knows when each value was superseded
//   station      one run: all of these with a timer. measured: what they count; failures: which keys fail, and why
//   snapshot     all figures at one moment, and their history: display shows them on the terminal, web/ in a browser
//   comparison   three stations, one after another, side by side in a table and a chart
// Code shared with other examples is in ../common.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "comparison.hpp"
#include "display.hpp"
#include "options.hpp"
#include "station.hpp"
#ifdef RONDO_EXAMPLE_WEB
#include "web/web_server.hpp"
#endif

namespace cache_refresh {
namespace {

using clock = std::chrono::steady_clock;

#ifdef RONDO_EXAMPLE_WEB
std::unique_ptr<web_server> listen(const options& chosen, const station& shown, const history& past) {
  if (chosen.listen.empty()) return nullptr;
  auto server = std::make_unique<web_server>(
      chosen.listen,
      web_source{.look = [&shown] { return shown.look(); },
                 .wheel = [&shown] { return shown.wheel(); },
                 .failing = [&shown](const std::string& find) { return shown.failing(find); },
                 .past = [&past] { return past.all(); },
                 .late_reasons = [&shown] { return shown.late_reasons(); },
                 .write_trace = [&shown](std::ostream& out) { shown.write_trace(out); }},
      chosen.stale_limit);
  fmt::print("Listening on {}\n", server->url());
  return server;
}
#else
std::nullptr_t listen(const options& chosen, const station&, const history&) {
  if (!chosen.listen.empty())
    throw std::runtime_error("--listen: this program was built without cpp-httplib and nlohmann-json");
  return nullptr;
}
#endif

void run(const options& chosen, origin& from, const std::vector<std::string>& names,
         common::interrupt& interrupted) {
  const zipf popular(names.size(), chosen.skewed);
  station run(chosen, from, names, popular);
  run.start();
  history past;
  [[maybe_unused]] auto page = listen(chosen, run, past);  // unused without a web server
  std::fflush(stdout);

  display display(chosen.plain);
  if (display.in_place()) interrupted.read_keys();
  const clock::time_point start = clock::now();
  const clock::time_point end =
      chosen.seconds == 0 ? clock::time_point::max() : start + std::chrono::seconds(chosen.seconds);
  clock::time_point next = start;
  for (bool over = false; !over;) {
    next += display.interval();
    over = interrupted.wait_until(std::min(next, end)) || clock::now() >= end;
    const snapshot now = run.look();
    past.add(now);
    display.show(now);
  }
  page = nullptr;
  run.stop();
  print_summary(run.look(), run.compare([&] { return interrupted.asked_again(); }), run.last_error());
}

std::ofstream create(const std::filesystem::path& file) {
  std::ofstream out;
  if (file.empty()) return out;
  out.open(file);
  if (!out) throw std::runtime_error(fmt::format("{}: cannot be written", file.string()));
  return out;
}

void finish(std::ofstream& out, const std::filesystem::path& file) {
  if (!file.empty() && !out.flush())
    throw std::runtime_error(fmt::format("{}: could not be written completely", file.string()));
}

void compare(const options& chosen, origin& from, const std::vector<std::string>& names,
             const common::interrupt& interrupted) {
  std::ofstream csv = create(chosen.csv);
  std::ofstream svg = create(chosen.svg);
  const comparison all = compare_modes(chosen, from, names, interrupted);
  if (all.modes.empty()) return;  // interrupted
  print(all);
  if (csv.is_open()) write_csv(all, csv);
  if (svg.is_open()) write_svg(all, svg);
  finish(csv, chosen.csv);
  finish(svg, chosen.svg);
}

// Returns the URL without what may contain a user and a password: the part before @, and the query. If it is not clear to
// which of them an @ belongs, returns the scheme only.
std::string without_password(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const std::size_t at = url.find('@');
  const std::size_t query = url.find('?');
  if (at == std::string::npos) return url.substr(0, query);
  if (query < at) return url.substr(0, scheme + 3) + "...";
  return url.substr(0, scheme + 3) + url.substr(at + 1, query == std::string::npos ? query : query - at - 1);
}

struct opened {
  std::unique_ptr<origin> from;
  std::vector<std::string> names;
};

opened open(const options& chosen) {
  try {
    opened all;
    all.from = open_origin(chosen.origin);
    all.names = all.from->keys(chosen.keys);
    if (all.names.empty()) throw origin_error("holds no keys");
    if (chosen.origin.rows != 0 && chosen.keys == 0 && all.names.size() != chosen.origin.rows) {
      throw origin_error(
          fmt::format("already holds {} rows: leave out --rows, or name another database", all.names.size()));
    }
    return all;
  } catch (const origin_error& bad) {
    throw std::runtime_error(fmt::format("{}: {}", without_password(chosen.origin.url), bad.what()));
  }
}

void run(const options& chosen) {
  const opened all = open(chosen);
  common::interrupt interrupted;  // before this line, signals end the program at once
  fmt::print("Origin: {}, {} keys; seed {}\n", all.from->name(), all.names.size(), chosen.seed);
  std::fflush(stdout);
  if (chosen.compare) {
    compare(chosen, *all.from, all.names, interrupted);
  } else {
    run(chosen, *all.from, all.names, interrupted);
  }
}

}  // namespace
}  // namespace cache_refresh

int main(int argc, char** argv) {
  const auto [chosen, exit_status] = cache_refresh::read_command_line(argc, argv);
  if (exit_status) return *exit_status;
  try {
    cache_refresh::run(chosen);
  } catch (const std::exception& bad) {
    fmt::print(stderr, "cache_refresh: {}\n", bad.what());
    return 2;
  }
  return 0;
}
