#include "options.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "common/command_line.hpp"

namespace order_timeout {
namespace {

constexpr const char* about =
    "A small shop whose payment limits, confirmations, price plans and reports are durable\n"
    "tasks.\n\n"
    "An order that is not paid within its limit is closed; an order that was paid is\n"
    "confirmed some time later; prices change at given times; a report is written each\n"
    "night, which takes three seconds here. These tasks wait in a database, where they are\n"
    "submitted in the same transactions as the orders. Start the program in several\n"
    "terminals with one store, and they share the work; kill one, and nothing is lost. At\n"
    "the end a summary accounts for every order in the store. Ctrl-C ends the program.\n";

// An option in milliseconds.
void add_time(CLI::App& app, const char* name, std::chrono::milliseconds& chosen, long least,
              const char* what) {
  app.add_option_function<long>(
         name, [&chosen](const long& given) { chosen = std::chrono::milliseconds(given); }, what)
      ->check(CLI::Range(least, 3'600'000L))
      ->default_str(std::to_string(chosen.count()))
      ->type_name("MS");
}

void add_shop(CLI::App& app, options& chosen) {
  app.add_option("--rate", chosen.rate, "Orders per second that are placed in this process")
      ->check(CLI::Range(0, 10'000))
      ->type_name("N");
  app.add_option("--pay-percent", chosen.pay_percent, "Percentage of orders that are paid in time")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
  add_time(app, "--limit", chosen.limit, 1, "How long an order may stay unpaid (in reality half an hour)");
}

void add_work(CLI::App& app, options& chosen) {
  add_time(app, "--work", chosen.work, 0, "How long a handler takes");
  add_time(app, "--lease", chosen.lease, 100, "After this time another node runs the tasks of a dead node");
  app.add_option("--threads", chosen.threads, "Threads that run handlers")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
}

}  // namespace

command_line read_command_line(int argc, char** argv) {
  options chosen;
  const std::filesystem::path file = common::cached("order_timeout.db");
  chosen.store = "sqlite:" + file.string();

  CLI::App app(about, "order_timeout");
  app.option_defaults()->always_capture_default();
  app.add_option("--store", chosen.store, "sqlite:FILE, created if it does not exist, or postgresql://…")
      ->type_name("URL");
  add_shop(app, chosen);
  add_work(app, chosen);
  app.add_option("--seconds", chosen.seconds,
                 "How long to run; the last orders are placed early enough\n"
                 "that their limits pass. 0 runs until Ctrl-C")
      ->check(CLI::Range(0, 1'000'000'000))
      ->type_name("N");
  app.add_flag("--plain", chosen.plain, "Print one line per second instead of a table, even on a\nterminal");
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  if (app.count("--store") == 0) common::make_folder_of(file);
  return {chosen, std::nullopt};
}

}  // namespace order_timeout
