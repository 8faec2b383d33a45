#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <random>

#include "common/command_line.hpp"

namespace cache_refresh {
namespace {

constexpr const char* about =
    "Keeps a cache fresh ahead of its expiry, with one Rondo timer.\n\n"
    "Readers read through the cache, a writer edits what the origin holds, and the cache\n"
    "loads each value again before it is stale. Without --origin that is an SQLite\n"
    "database, filled on the first run with the fields of this machine's package\n"
    "catalogue. A summary at the end says what readers got. q or Ctrl-C ends it.\n";

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
  double soft_ttl = 0;
  double hard_ttl = 60;
  double load_deadline = 2;
  double longest_retry = 5;
  double forget_after = 0;
};

void add_origin(CLI::App& app, options& chosen) {
  app.add_option("--origin", chosen.origin.url,
                 "Where the values come from: file:DIR, sqlite:FILE,\n"
                 "http(s)://HOST/FOLDER/ or postgresql://HOST/DATABASE")
      ->type_name("URL");
  app.add_option("--catalogue", chosen.origin.catalogue,
                 "What a new database is filled with: a file of package\n"
                 "records as dpkg and apt keep them")
      ->type_name("FILE");
  app.add_option("--rows", chosen.origin.rows, "Instead of that, fill it with N made-up rows")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  auto* list =
      app.add_option("--list", chosen.origin.list_query, "A database of your own: SQL that gives its keys")
          ->type_name("SQL");
  auto* load = app.add_option("--load", chosen.origin.load_query,
                              "And SQL that gives value, validator and perhaps the time\n"
                              "to live in ms of the key $1 (?1 for SQLite)")
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
  app.add_option("--edits", chosen.edits, "Values that the writer changes at the origin, a second")
      ->check(CLI::Range(0, 100'000))
      ->type_name("N");
  app.add_flag("!--cold", chosen.warm, "Load keys when they are first read, not all at the start");
}

void add_policy(CLI::App& app, options& chosen, raw& given) {
  app.add_option("--mode", chosen.policy.mode,
                 "When values are loaded again: 'ahead' of their expiry,\n"
                 "'on-read' of a stale one, or after 'expire', while the\n"
                 "reader waits")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, refresh_mode>{{"ahead", refresh_mode::ahead},
                                                                      {"on-read", refresh_mode::on_read},
                                                                      {"expire", refresh_mode::expire}})
              .description(""))
      ->default_str("ahead")
      ->type_name("HOW");
  add_seconds(app, "--soft-ttl", given.soft_ttl,
              "How long values are fresh (default: what the origin says,\nor 60)")
      ->default_str("");
  add_seconds(app, "--hard-ttl", given.hard_ttl, "How long they are served, if the origin does not say");
  app.add_option("--refresh-at", chosen.policy.refresh_at, "Where in the soft TTL the next load begins")
      ->check(CLI::Range(0.1, 1.0))
      ->type_name("SHARE");
  app.add_option("--jitter", chosen.policy.jitter, "And how far from there, to either side, at random")
      ->check(CLI::Range(0.0, 0.1))
      ->type_name("SHARE");
  add_seconds(app, "--load-deadline", given.load_deadline, "A load that takes longer has failed");
  add_seconds(app, "--longest-retry", given.longest_retry, "The longest time between two loads that fail");
  add_seconds(app, "--forget-after", given.forget_after,
              "Drop keys that nobody has read for so long (default: never)")
      ->default_str("");
  app.add_option("--workers", chosen.policy.loads_at_once, "Threads that load, and so loads at once")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
}

void add_chaos(CLI::App& app, options& chosen) {
  app.add_option("--chaos", chosen.chaos.kind,
                 "After five good seconds the origin is 'slow', 'down' for\n"
                 "15 s out of 30, 'flap's each 2 s, or gives 'wrong' answers")
      ->transform(CLI::CheckedTransformer(std::map<std::string, chaos>{{"none", chaos::none},
                                                                       {"slow", chaos::slow},
                                                                       {"down", chaos::down},
                                                                       {"flap", chaos::flap},
                                                                       {"wrong", chaos::wrong}})
                      .description(""))
      ->default_str("none")
      ->type_name("HOW");
  app.add_option("--fail-percent", chosen.chaos.fail_percent, "So many loads in a hundred fail")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
}

void add_output(CLI::App& app, options& chosen) {
  auto* compare = app.add_flag("--compare", chosen.compare,
                               "Run the same work in all three modes, SECONDS each, and\n"
                               "print them side by side");
  app.add_option("--csv", chosen.csv, "Write the comparison there, too")->needs(compare)->type_name("FILE");
  app.add_option("--svg", chosen.svg, "Draw it there")->needs(compare)->type_name("FILE");
  app.add_option("--listen", chosen.listen, "Serve a page with the wheel, /metrics and /healthz there")
      ->type_name("HOST:PORT");
  app.add_option("--stale-limit", chosen.stale_limit, "Share of stale keys from which /healthz fails")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  app.add_option("--seconds", chosen.seconds, "How long to run; 0: until Ctrl-C")
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  app.add_option("--seed", chosen.seed, "Makes the random choices repeatable; 0: other ones each time")
      ->type_name("N");
  app.add_flag("--plain", chosen.plain, "One line a second also on a terminal, instead of a table");
}

void set_policy(refresh_policy& policy, const raw& given) {
  policy.hard_ttl = seconds(given.hard_ttl);
  policy.load_deadline = seconds(given.load_deadline);
  policy.longest_retry = seconds(given.longest_retry);
  if (given.forget_after > 0) policy.forget_after = seconds(given.forget_after);
}

}  // namespace

command_line read_command_line(int argc, char** argv) {
  options chosen;
  chosen.origin.catalogue = "/var/lib/dpkg/status";
  chosen.origin.url = "sqlite:" + common::cached("cache_refresh.db").string();
  chosen.policy.loads_at_once = 4;
  chosen.chaos.fail_percent = 2;
  raw given;

  CLI::App app(about, "cache_refresh");
  app.option_defaults()->always_capture_default();
  add_origin(app, chosen);
  add_load(app, chosen, given);
  add_policy(app, chosen, given);
  add_chaos(app, chosen);
  add_output(app, chosen);
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  if (app.count("--origin") == 0) common::make_folder_of(common::cached("cache_refresh.db"));
  chosen.skewed = given.pick == "skewed";
  set_policy(chosen.policy, given);
  if (given.soft_ttl > 0) chosen.soft_ttl = seconds(given.soft_ttl);
  if (chosen.compare && chosen.seconds == 0) chosen.seconds = 10;
  if (chosen.seed == 0) chosen.seed = std::random_device{}();
  chosen.origin.seed = chosen.policy.seed = chosen.chaos.seed = chosen.seed;
  return {chosen, std::nullopt};
}

}  // namespace cache_refresh
