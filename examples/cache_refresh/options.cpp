#include "options.hpp"

#include <CLI/CLI.hpp>
#include <random>
#include <string>

#include "common/command_line.hpp"

namespace cache_refresh {
namespace {

constexpr const char* about =
    "Keeps a cache of records fresh ahead of their expiry, with one Rondo timer.\n\n"
    "The origin is an SQLite database, filled on the first run with the fields of this\n"
    "machine's package catalogue. Readers read through the cache while a writer edits\n"
    "the origin; at the end a summary says how far behind the origin the values served\n"
    "have been. Ctrl-C ends it.\n";

void add_origin(CLI::App& app, options& chosen) {
  app.add_option("--db", chosen.database, "The origin's SQLite database; made if it does not exist")
      ->type_name("FILE");
  app.add_option("--catalogue", chosen.catalogue,
                 "Where the records come from when the database is made:\n"
                 "a file of package records as dpkg and apt keep them")
      ->type_name("FILE");
  app.add_option("--keys", chosen.keys, "Use only the first N rows; 0: all")->type_name("N");
}

void add_load(CLI::App& app, options& chosen, std::string& pick) {
  app.add_option("--readers", chosen.readers, "Threads that read through the cache")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  app.add_option("--reads", chosen.reads, "Reads a second, of all readers together")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  app.add_option("--pick", pick,
                 "Which keys are read: 'skewed', the k-th key 1/k as often\n"
                 "as the first, or 'uniform', all alike")
      ->check(CLI::IsMember({"skewed", "uniform"}))
      ->type_name("HOW");
  app.add_option("--edits", chosen.edits, "Rows that the writer changes at the origin, a second")
      ->check(CLI::Range(0, 100'000))
      ->type_name("N");
}

void add_refresh(CLI::App& app, options& chosen) {
  app.add_option("--workers", chosen.workers, "Threads that load from the origin")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  app.add_option("--fail-percent", chosen.fail_percent,
                 "So many loads in a hundred fail, as if the origin had\n"
                 "not answered; they are retried, and the old value is\n"
                 "served meanwhile")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
}

void add_run(CLI::App& app, options& chosen) {
  app.add_option("--seconds", chosen.seconds, "How long to run; 0: until Ctrl-C")
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  app.add_option("--seed", chosen.seed, "Makes the random choices repeatable; 0: other ones each time")
      ->type_name("N");
  app.add_flag("--plain", chosen.plain, "One line a second also on a terminal, instead of a table");
}

}  // namespace

command_line read_command_line(int argc, char** argv) {
  options chosen;
  chosen.database = common::cached("cache_refresh.db");
  std::string pick = "skewed";

  CLI::App app(about, "cache_refresh");
  app.option_defaults()->always_capture_default();
  add_origin(app, chosen);
  add_load(app, chosen, pick);
  add_refresh(app, chosen);
  add_run(app, chosen);
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  if (app.count("--db") == 0) common::make_folder_of(chosen.database);
  chosen.skewed = pick == "skewed";
  if (chosen.seed == 0) chosen.seed = std::random_device{}();
  return {chosen, std::nullopt};
}

}  // namespace cache_refresh
