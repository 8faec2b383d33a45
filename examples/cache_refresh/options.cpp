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
    "Keeps a cache fresh ahead of its expiry, with one Rondo timer.\n\n"
    "Readers read through the cache, a writer edits what the origin holds, and the cache\n"
    "loads each value again before it is stale. The origin is by default an SQLite\n"
    "database, filled on the first run with the fields of this machine's package\n"
    "catalogue. A summary at the end says what readers got. Ctrl-C ends it, and q while\n"
    "it shows a table.\n";

// Seconds, with a fraction, as durations.
CLI::Option* add_seconds(CLI::App& app, const std::string& name, double& value, const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::Range(0.001, 1e9))->type_name("SECONDS");
}

rondo::duration seconds(double count) {
  return std::chrono::duration_cast<rondo::duration>(std::chrono::duration<double>(count));
}

// What the options are before they are given their types.
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
                 "A database gets a table of its own, unless --load is given")
      ->type_name("URL");
  app.add_option("--catalogue", chosen.origin.catalogue,
                 "Fill a new database with these package records, in the\n"
                 "format of dpkg and apt")
      ->type_name("FILE");
  app.add_option("--rows", chosen.origin.rows, "Fill a new database with N made-up rows instead")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N")
      ->default_str("");
  auto* list =
      app.add_option("--list", chosen.origin.list_query, "SQL that gives the keys of a database of your own")
          ->type_name("SQL");
  auto* load = app.add_option("--load", chosen.origin.load_query,
                              "SQL that gives value, validator and (if you like) time to\n"
                              "live in ms of one key: $1, for SQLite ?1")
                   ->type_name("SQL");
  list->needs(load);
  load->needs(list);
  app.add_option("--keys", chosen.keys, "Use only the first N keys; 0: all")->type_name("N");
}

void add_load(CLI::App& app, options& chosen, raw& given) {
  app.add_option("--readers", chosen.readers, "Threads that read through the cache")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  app.add_option("--reads", chosen.reads, "Reads a second, of all readers together")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  app.add_option("--pick", given.pick,
                 "Which keys are read: 'skewed', the k-th key 1/k as often\n"
                 "as the first, or 'uniform', all alike")
      ->check(CLI::IsMember({"skewed", "uniform"}))
      ->type_name("HOW");
  app.add_option("--edits", given.edits,
                 "Values that the writer changes at the origin, a second\n"
                 "(default: 100 in a table of this program's own, none\n"
                 "elsewhere). In files of yours it appends a mark!")
      ->check(CLI::Range(0, 100'000))
      ->type_name("N")
      ->default_str("");
  app.add_flag("--cold", given.cold, "Load keys when they are first read, not all at the start");
}

void add_policy(CLI::App& app, options& chosen, raw& given) {
  app.add_option("--mode", given.mode,
                 "When values are loaded again: 'ahead' of their expiry,\n"
                 "'on-read' of a stale one, or after 'expire', while the\n"
                 "reader waits")
      ->check(CLI::IsMember({"ahead", "on-read", "expire"}))
      ->type_name("HOW");
  add_seconds(app, "--soft-ttl", given.soft_ttl,
              "How long values are fresh (default: what the origin says,\nor 60)")
      ->default_str("");
  add_seconds(app, "--hard-ttl", given.hard_ttl, "How long they are served, if the origin does not say");
  app.add_option("--refresh-at", chosen.policy.refresh_at, "Where in the soft TTL the next load begins")
      ->check(CLI::Range(0.1, 1.0))
      ->type_name("SHARE");
  app.add_option("--jitter", chosen.policy.jitter, "How far before or after that it may begin, at random")
      ->check(CLI::Range(0.0, 0.1))
      ->type_name("SHARE");
  add_seconds(app, "--load-deadline", given.load_deadline, "A load that takes longer has failed");
  add_seconds(app, "--longest-retry", given.longest_retry, "The longest time from a failed load to the next");
  add_seconds(app, "--forget-after", given.forget_after,
              "Drop keys that nobody has read for so long (default: never)")
      ->default_str("");
  app.add_option("--workers", chosen.policy.loads_at_once, "Threads that load, and so loads at once")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
}

void add_chaos(CLI::App& app, raw& given) {
  app.add_option("--chaos", given.chaos,
                 "After five good seconds the origin is 'slow'; 'down' for\n"
                 "15 s of every 30; down for 2 s of every 4 ('flap'); or\n"
                 "gives 'wrong' answers")
      ->check(CLI::IsMember({"none", "slow", "down", "flap", "wrong"}))
      ->type_name("HOW");
  app.add_option("--fail-percent", given.fail_percent,
                 "So many loads in a hundred fail (default: 2 with a table\n"
                 "of this program's own, none elsewhere)")
      ->check(CLI::Range(0, 100))
      ->type_name("N")
      ->default_str("");
}

void add_output(CLI::App& app, options& chosen) {
  auto* compare = app.add_flag("--compare", chosen.compare,
                               "Run the same work in all three modes, for --seconds each\n"
                               "(default: 10), and print them side by side");
  app.add_option("--csv", chosen.csv, "Write the comparison there, too")->needs(compare)->type_name("FILE");
  app.add_option("--svg", chosen.svg, "Draw the comparison there")->needs(compare)->type_name("FILE");
  app.add_option("--listen", chosen.listen, "Serve a page with the wheel, /metrics and /healthz there")
      ->type_name("HOST:PORT")
      ->excludes(compare);
  app.get_option("--mode")->excludes(compare);
  app.add_option("--stale-limit", chosen.stale_limit,
                 "Share of stale and empty keys above which /healthz fails")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  app.add_option("--seconds", chosen.seconds, "How long to run; 0: until q or Ctrl-C")
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  app.add_option("--seed", chosen.seed, "Makes the random choices repeatable; 0: other ones each time")
      ->type_name("N");
  app.add_flag("--plain", chosen.plain, "One line a second also on a terminal, instead of a table");
}

void set_policy(refresh_policy& policy, const raw& given) {
  policy.mode = modes.at(given.mode);
  policy.hard_ttl = seconds(given.hard_ttl);
  policy.load_deadline = seconds(given.load_deadline);
  policy.longest_retry = seconds(given.longest_retry);
  if (given.forget_after > 0) policy.forget_after = seconds(given.forget_after);
}

// What this program has filled, and may change.
bool has_own_table(const origin_options& origin) {
  const bool database = origin.url.starts_with("sqlite:") || origin.url.starts_with("postgres");
  return database && origin.load_query.empty();
}

void set_origin(options& chosen, const raw& given, bool is_default) {
  if (is_default) {
    // Filled with so many rows it is another one.
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
      throw CLI::ValidationError("--rows", "only a new database can be filled");
  });
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  set_origin(chosen, given, app.count("--origin") == 0);
  set_policy(chosen.policy, given);
  chosen.skewed = given.pick == "skewed";
  chosen.warm = !given.cold;
  if (given.soft_ttl > 0) chosen.soft_ttl = seconds(given.soft_ttl);
  if (chosen.compare && chosen.seconds == 0) chosen.seconds = 10;
  if (chosen.seed == 0) chosen.seed = std::random_device{}();
  chosen.origin.seed = chosen.policy.seed = chosen.chaos.seed = chosen.seed;
  return {chosen, std::nullopt};
}

}  // namespace cache_refresh
