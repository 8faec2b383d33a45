// What durable tasks cost: submitting, claiming and completing them, how late they are, and what the database does for
// each. The table also has many far-off tasks. See README.md.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "durable_counts.hpp"
#include "durable_processes.hpp"
#include "durable_workloads.hpp"
#include "report.hpp"
#ifdef WITH_SQLITE
#include "durable/sqlite_database.hpp"
#endif
#ifdef WITH_POSTGRESQL
#include "durable/postgresql_database.hpp"
#include "rivals/graphile_worker.hpp"
#endif

namespace {

using namespace durable_workloads;

struct sizes {
  std::size_t far_off, submitted, listed, due, few_due, many_due, rival_due, in_time, under_load, held;
  std::chrono::seconds ahead;  // when the first future task is due: beyond the window, except in small runs
};
constexpr sizes all{1'000'000, 1'000, 10'000, 20'000, 1'000, 100'000, 5'000, 2'000, 10'000, 100'000, 7s};
constexpr sizes small{100, 20, 100, 100, 50, 100, 50, 20, 100, 100, 0s};
constexpr std::size_t per_second = 200;
constexpr std::size_t at_once = 3;  // dispatchers

constexpr const char* submitting = ": submit";
constexpr const char* listing = ": submit a list";
constexpr const char* running = ": claim, run, complete";
constexpr const char* running_few = ": few are due";
constexpr const char* running_many = ": many are due";
constexpr const char* lateness = ": lateness";
constexpr const char* loaded = ": lateness at 1,000 a second";
constexpr const char* work = ": work of the database for a task";
constexpr const char* memory = ": memory of a held task";
constexpr const char* beside_rival = ", beside graphile-worker";

/// Whether any workload of the engine is wanted: filling a database takes a while.
bool is_wanted(const measure::report& report, const std::string& engine) {
  const auto wanted = [&](const char* workload) { return report.wanted(engine + workload); };
  return wanted(submitting) || wanted(listing) || wanted(running) || wanted(running_few) ||
         wanted(running_many) || wanted(lateness) || wanted(loaded) || wanted(work) || wanted(memory);
}

double milliseconds(rondo::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

void measure_lateness(measure::report& report, place& at, const sizes& n) {
  const std::string name = at.name() + lateness;
  if (!report.wanted(name)) return;
  measure::table result{.workload = name, .unit = "ms", .rows = {}, .compared = false};
  const auto add = [&](const std::string& what, const dispatcher_statistics& s) {
    result.rows.push_back({what + ", p50", milliseconds(s.lateness.quantile(0.5))});
    result.rows.push_back({what + ", p99", milliseconds(s.lateness.quantile(0.99))});
  };
  for (const std::size_t times : {1u, 5u})
    add(std::to_string(times * per_second) + " a second",
        run_in_time(at, {times * n.in_time, times * per_second, n.ahead}));
  add("submitted 20 ms before", run_soon(at, n.in_time / 10));
  report.add(result);
}

/// With and without far-off tasks that another thread submits, 100,000 a minute.
void measure_lateness_under_load(measure::report& report, place& at, const sizes& n) {
  const std::string name = at.name() + loaded;
  if (!report.wanted(name)) return;
  measure::table result{.workload = name, .unit = "ms", .rows = {}, .compared = false};
  const auto add = [&](const std::string& what, const auto& run) {
    if (!report.takes_part(what)) return;
    const dispatcher_statistics s = run();
    for (const auto& [text, q] : {std::pair(", p50", 0.5), {", p99", 0.99}, {", p99.9", 0.999}})
      result.rows.push_back({what + text, milliseconds(s.lateness.quantile(q))});
  };
  const std::pair<const char*, far_off> loads[] = {
      {"", {}}, {" + lists of 100", {100'000, 100}}, {" + single", {100'000, 1}}};
  for (const auto& [others, load] : loads)
    add(std::string("ahead") + others, [&, load = load] {
      return run_in_time(at, {n.under_load, 1'000, n.ahead}, load);
    });
  for (const auto& [others, load] : loads)
    add(std::string("20 ms before") + others, [&, load = load] {
      return run_from_lists(at, {n.under_load, 1'000, 20ms}, load);
    });
  report.add(result);
}

template <class Count>
void count_work(measure::report& report, place& at, const sizes& n, Count count) {
  const std::string name = at.name() + work;
  if (!report.wanted(name)) return;
  measure::table result{.workload = name, .unit = "", .rows = {}, .compared = false};
  const auto add = [&](const std::string& what, const counts& c) {
    result.rows.push_back({what + ": statements", c.statements});
    result.rows.push_back({what + ": rows changed", c.rows});
    result.rows.push_back({what + ": transactions", c.transactions});
  };
  add("all are due", count(at, {n.due / 4, 1'000'000, -1s}));
  add(std::to_string(per_second) + " a second", count(at, {n.in_time, per_second, n.ahead}));
  report.add(result);
}

template <class Count>
void measure_all(measure::report& report, place& at, const sizes& n, worker_processes& processes,
                 Count count) {
  at.fill_far_off(n.far_off);
  report.compare(at.name() + submitting, "µs a task",
                 {{"one by one", [&] { return submit(at, n.submitted, 1); }},
                  {"10 in a transaction", [&] { return submit(at, n.submitted, 10); }},
                  {"1,000 in a transaction", [&] { return submit(at, n.submitted, 1'000); }},
                  {"a list of 1,000", [&] { return submit_list(at, n.submitted); }}});
  report.compare(at.name() + listing, "µs a task",
                 {{"a list of 10,000", [&] { return submit_list(at, n.listed); }}});
  report.compare(
      at.name() + running, "µs a task",
      {{"one dispatcher", [&] { return run_all(at, n.due, 1); }},
       {"three dispatchers", [&] { return run_all(at, n.due, at_once); }},
       {"one dispatcher, beside lanes", [&] { return run_beside_lanes(at, n.due, n.due / 2); }},
       {"one dispatcher, two tasks in each lane", [&] { return run_all(at, n.due, 1, n.due / 2); }}});
  for (const auto& [workload, due] : {std::pair(running_few, n.few_due), {running_many, n.many_due}})
    report.compare(at.name() + workload, "µs a task",
                   {{"one dispatcher", [&, due = due] { return run_all(at, due, 1); }},
                    {"three dispatchers", [&, due = due] { return run_all(at, due, at_once); }},
                    {"three processes", [&, due = due] { return run_all(at, due, processes); }}});
  measure_lateness(report, at, n);
  measure_lateness_under_load(report, at, n);
  count_work(report, at, n, count);
  const std::string held = at.name() + memory;
  if (report.wanted(held))
    report.add(
        {.workload = held, .unit = "bytes", .rows = {{"held", bytes_held(at, n.held)}}, .compared = false});
}

#ifdef WITH_POSTGRESQL
/// Both in one database, without far-off tasks, in turns.
void compare_with_graphile_worker(measure::report& report, place& at, const sizes& n) {
  const graphile_worker other(at.url());
  const auto compare = [&](const std::string& workload, std::vector<measure::contender> both) {
    report.compare("PostgreSQL" + (": " + workload) + beside_rival, "µs a task", std::move(both));
  };
  const auto theirs = [&](const std::string& command, std::size_t tasks, const std::string& preset = "") {
    return [&other, line = command + ' ' + std::to_string(tasks) + preset] { return other.run(line); };
  };
  compare("submit", {{"Rondo", [&] { return submit(at, n.submitted, 1); }},
                     {"graphile-worker", theirs("submit", n.submitted)}});
  for (const std::size_t length : {n.submitted, n.listed})
    compare("submit a list of " + measure::readable(length),
            {{"Rondo", [&, length] { return submit_list(at, length); }},
             {"graphile-worker", theirs("list", length)}});
  compare("run", {{"Rondo", [&] { return run_all(at, n.rival_due, 1); }},
                  {"graphile-worker, defaults", theirs("run", n.rival_due, " defaults")},
                  {"graphile-worker, batches", theirs("run", n.rival_due, " batches")}});
  compare("run many", {{"Rondo", [&] { return run_all(at, n.due, 1); }},
                       {"graphile-worker, batches", theirs("run", n.due, " batches")}});
}
#endif

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const sizes& n = report.small() ? small : all;
  worker_processes processes(at_once);  // before there are threads
#ifdef WITH_SQLITE
  if (is_wanted(report, "SQLite")) {
    place at("SQLite", std::make_unique<durable_test::sqlite_database>(), true);
    measure_all(report, at, n, processes, count_sqlite);
  }
#endif
#ifdef WITH_POSTGRESQL
  const bool has_rival = graphile_worker::folder() != nullptr;
  durable_test::postgresql_server* const server =
      has_rival || is_wanted(report, "PostgreSQL") ? durable_test::postgresql_server::get() : nullptr;
  if (server != nullptr && has_rival) {
    place at("PostgreSQL", std::make_unique<durable_test::postgresql_database>(*server), false);
    compare_with_graphile_worker(report, at, n);
  }
  if (server != nullptr && is_wanted(report, "PostgreSQL")) {
    place at("PostgreSQL", std::make_unique<durable_test::postgresql_database>(*server), false);
    measure_all(report, at, n, processes, count_postgresql);
  }
#endif
  return report.finish();
}
