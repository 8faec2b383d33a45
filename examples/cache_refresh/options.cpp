#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "common/command_line.hpp"

namespace cache_refresh {
namespace {

constexpr const char* about =
    "Keeps a cache fresh ahead of expiry, with one Rondo timer.\n\n"
    "Readers read through the cache, a writer edits values at the origin, and the cache\n"
    "reloads each value before it is stale. By default the origin is an SQLite database,\n"
    "which the first run fills with the fields of this machine's package catalogue. A\n"
    "summary at the end says what readers got. Ctrl-C ends the program; so does q while\n"
    "a table is shown.\n";

// An option in seconds, which may have a fraction.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& value, const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::Range(0.001, 1e9))->type_name("SECONDS");
}

rondo::duration duration_of(double count) {
  return std::chrono::duration_cast<rondo::duration>(std::chrono::duration<double>(count));
}

// The options as given, before conversion to their types.
struct raw {
  std::string pick = "skewed";
  std::string mode = "ahead";
  std::string chaos = "none";
  bool cold = false;
  std::optional<unsigned> edits;
  std::optional<unsigned> fail_percent;
  double soft_ttl = 0;
  double hard_ttl = 60;
  double load_deadline = 2;
  double longest_retry = 5;
  double forget_after = 0;
};

const std::map<std::string, refresh_mode> modes = {
    {"ahead", refresh_mode::ahead}, {"on-read", refresh_mode::on_read}, {"expire", refresh_mode::expire}};
const std::map<std::string, chaos> kinds_of_chaos = {{"none", chaos::none},
                                                     {"slow", chaos::slow},
                                                     {"down", chaos::down},
                                                     {"flap", chaos::flap},
                                                     {"wrong", chaos::wrong}};

void add_origin(CLI::App& app, options& chosen) {
  app.add_option("--origin", chosen.origin.url,
                 "Where the values come from: file:DIR, sqlite:FILE,\n"
                 "http(s)://HOST/FOLDER/ or postgresql://HOST/DATABASE.\n"
                 "In a database the program creates its own table, unless\n"
                 "--load is given")
      ->type_name("URL");
  app.add_option("--catalogue", chosen.origin.catalogue,
                 "Fill a new database with these package records, in the\n"
                 "format of dpkg and apt")
      ->type_name("FILE");
  app.add_option("--rows", chosen.origin.rows, "Fill a new database with N made-up rows instead")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N")
      ->default_str("");
  auto* list = app.add_option("--list", chosen.origin.list_query,
                              "SQL that returns the keys of a database of your own")
                   ->type_name("SQL");
  auto* load = app.add_option("--load", chosen.origin.load_query,
                              "SQL that returns value, validator and (optionally) time to\n"
                              "live in ms of one key, which is $1, or ?1 for SQLite")
                   ->type_name("SQL");
  list->needs(load);
  load->needs(list);
  app.add_option("--keys", chosen.keys, "Use only the first N keys; 0 uses all")->type_name("N");
}

void add_load(CLI::App& app, options& chosen, raw& given) {
  app.add_option("--readers", chosen.readers, "Threads that read through the cache")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  app.add_option("--reads", chosen.reads, "Reads per second, of all readers together")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  app.add_option("--pick", given.pick,
                 "Which keys are read: 'skewed' reads the k-th key 1/k as\n"
                 "often as the first, 'uniform' reads all equally often")
      ->check(CLI::IsMember({"skewed", "uniform"}))
      ->type_name("HOW");
  app.add_option("--edits", given.edits,
                 "Values per second that the writer changes at the origin\n"
                 "(default: 100 in this program's own table, none\n"
                 "elsewhere). In your own files it appends a mark!")
      ->check(CLI::Range(0, 100'000))
      ->type_name("N")
      ->default_str("");
  app.add_flag("--cold", given.cold, "Load each key at its first read, not all at the start");
}

void add_policy(CLI::App& app, options& chosen, raw& given) {
  app.add_option("--mode", given.mode,
                 "'ahead' reloads values before they expire, 'on-read' when a\n"
                 "stale one is read, 'expire' after they have expired, while\n"
                 "the reader waits")
      ->check(CLI::IsMember({"ahead", "on-read", "expire"}))
      ->type_name("HOW");
  add_seconds(app, "--soft-ttl", given.soft_ttl,
              "How long values are fresh (default: what the origin says,\nor 60)")
      ->default_str("");
  add_seconds(app, "--hard-ttl", given.hard_ttl, "How long values are served, if the origin does not say");
  app.add_option("--refresh-at", chosen.policy.refresh_at,
                 "Share of the soft TTL after which the next load begins")
      ->check(CLI::Range(0.1, 1.0))
      ->type_name("SHARE");
  app.add_option("--jitter", chosen.policy.jitter,
                 "Share of the soft TTL by which that load may begin earlier\n"
                 "or later, at random")
      ->check(CLI::Range(0.0, 0.1))
      ->type_name("SHARE");
  add_seconds(app, "--load-deadline", given.load_deadline, "A load that takes longer counts as failed");
  add_seconds(app, "--longest-retry", given.longest_retry,
              "The longest time from a failed load to the next load");
  add_seconds(app, "--forget-after", given.forget_after,
              "Drop keys that nobody has read for this long (default:\nnever)")
      ->default_str("");
  app.add_option("--workers", chosen.policy.loads_at_once,
                 "Threads that load; each has one load in progress at a time")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
}

void add_chaos(CLI::App& app, raw& given) {
  app.add_option("--chaos", given.chaos,
                 "How the origin misbehaves after five good seconds: 'slow'\n"
                 "or 'wrong' answers at random, 'down' for 15 s of every 30,\n"
                 "or 'flap', which is down for 2 s of every 4")
      ->check(CLI::IsMember({"none", "slow", "down", "flap", "wrong"}))
      ->type_name("HOW");
  app.add_option("--fail-percent", given.fail_percent,
                 "Percentage of loads that fail (default: 2 with this\n"
                 "program's own table, none elsewhere)")
      ->check(CLI::Range(0, 100))
      ->type_name("N")
      ->default_str("");
}

void add_output(CLI::App& app, options& chosen) {
  auto* compare = app.add_flag("--compare", chosen.compare,
                               "Run the same work in all three modes, for --seconds each\n"
                               "(default: 10), and print them side by side");
  app.add_option("--csv", chosen.csv, "Also write the comparison to this file, as CSV")
      ->needs(compare)
      ->type_name("FILE");
  app.add_option("--svg", chosen.svg, "Draw the comparison into this file, as SVG")
      ->needs(compare)
      ->type_name("FILE");
  app.add_option("--listen", chosen.listen,
                 "Serve a page with the wheel, /metrics and /healthz at\nthis address")
      ->type_name("HOST:PORT")
      ->excludes(compare);
  app.get_option("--mode")->excludes(compare);
  app.add_option("--stale-limit", chosen.stale_limit,
                 "Share of stale and empty keys above which /healthz fails")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  app.add_option("--seconds", chosen.seconds, "How long to run; 0 runs until q or Ctrl-C")
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  app.add_option("--seed", chosen.seed, "Make random choices repeatable; 0 makes new ones each time")
      ->type_name("N");
  app.add_flag("--plain", chosen.plain, "Print one line per second instead of a table, even on a\nterminal");
}

void set_policy(refresh_policy& policy, const raw& given) {
  policy.mode = modes.at(given.mode);
  policy.hard_ttl = duration_of(given.hard_ttl);
  policy.load_deadline = duration_of(given.load_deadline);
  policy.longest_retry = duration_of(given.longest_retry);
  if (given.forget_after > 0) policy.forget_after = duration_of(given.forget_after);
}

// Whether the program has filled this database itself, and so may change it.
bool has_own_table(const origin_options& origin) {
  const bool database = origin.url.starts_with("sqlite:") || origin.url.starts_with("postgres");
  return database && origin.load_query.empty();
}

void set_origin(options& chosen, const raw& given, bool is_default) {
  if (is_default) {
    // A database with a given number of rows has its own file.
    const std::string rows = chosen.origin.rows == 0 ? "" : "_" + std::to_string(chosen.origin.rows);
    const auto file = common::cached("cache_refresh" + rows + ".db");
    common::make_folder_of(file);
    chosen.origin.url = "sqlite:" + file.string();
  }
  const bool own = has_own_table(chosen.origin);
  chosen.edits = given.edits.value_or(own ? 100 : 0);
  chosen.chaos.kind = kinds_of_chaos.at(given.chaos);
  chosen.chaos.fail_percent = given.fail_percent.value_or(own ? 2 : 0);
}

}  // namespace

command_line read_command_line(int argc, char** argv) {
  options chosen;
  chosen.origin.catalogue = "/var/lib/dpkg/status";
  chosen.origin.url = "sqlite:" + common::cached("cache_refresh.db").string();
  chosen.policy.loads_at_once = 4;
  raw given;

  CLI::App app(about, "cache_refresh");
  app.option_defaults()->always_capture_default();
  add_origin(app, chosen);
  add_load(app, chosen, given);
  add_policy(app, chosen, given);
  add_chaos(app, given);
  add_output(app, chosen);
  app.final_callback([&] {
    if (chosen.origin.rows != 0 && !has_own_table(chosen.origin))
      throw CLI::ValidationError("--rows",
                                 "needs this program's own table: sqlite: or postgresql: without --load");
  });
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  set_origin(chosen, given, app.count("--origin") == 0);
  set_policy(chosen.policy, given);
  chosen.skewed = given.pick == "skewed";
  chosen.warm = !given.cold;
  if (given.soft_ttl > 0) chosen.soft_ttl = duration_of(given.soft_ttl);
  if (chosen.compare && chosen.seconds == 0) chosen.seconds = 10;
  if (chosen.seed == 0) chosen.seed = std::random_device{}();
  chosen.origin.seed = chosen.policy.seed = chosen.chaos.seed = chosen.seed;
  return {chosen, std::nullopt};
}

}  // namespace cache_refresh
