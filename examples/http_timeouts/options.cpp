#include "options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/command_line.hpp"

namespace http_timeouts {
namespace {

constexpr const char* about =
    "An HTTP server with three timeouts per connection, under load.\n\n"
    "The server runs in a process of its own. This one opens the connections, sends\n"
    "requests on them, and plays slow clients: some send nothing, some a header byte\n"
    "by byte, some a body byte by byte. After the load all clients fall silent, and\n"
    "the server has to cut off every connection. The exit status is 1 if a run has\n"
    "faults: for example, if a connection was cut off too early or never, an answer\n"
    "was wrong, or a cleared Rondo timeout fired.\n";

constexpr unsigned longest_ms = 600'000;

void add_load(CLI::App& app, options& chosen) {
  app.add_option("--connections", chosen.connections, "Connections that send requests, one after another")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  app.add_option("--slow", chosen.slow, "Additional slow clients; one that is cut off reconnects")
      ->check(CLI::Range(0, 10'000))
      ->type_name("N");
  app.add_option("--rate", chosen.rate,
                 "Requests per second, of all connections together; with 0\n"
                 "each connection sends one as soon as the last was answered")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  app.add_option("--seconds", chosen.seconds, "How long to measure, once all are connected")
      ->check(CLI::Range(1, 86'400))
      ->type_name("N");
}

void add_limit(CLI::App& app, std::array<unsigned, phases>& limits, phase p, const char* name,
               const char* what) {
  app.add_option(name, limits[index_of(p)], what)->check(CLI::Range(10U, longest_ms))->type_name("MS");
}

}  // namespace

command_line read_command_line(int argc, char** argv) {
  options chosen;
  std::string with = "rondo";
  std::array<unsigned, phases> limits{};
  for (std::size_t i = 0; i < phases; ++i) limits[i] = static_cast<unsigned>(chosen.limits[i].count());

  CLI::App app(about, "http_timeouts");
  app.option_defaults()->always_capture_default();
  add_load(app, chosen);
  add_limit(app, limits, phase::idle, "--idle",
            "The timeout from connecting, or from a response,\nto the first byte of the next request");
  add_limit(app, limits, phase::header, "--header",
            "The timeout from the first byte of a request to the end\nof its header");
  add_limit(app, limits, phase::request, "--request",
            "The timeout from the first byte of a request to the end\nof the response");
  auto* timers = app.add_option("--timers", with,
                                "What the timeouts are: 'rondo', one scheduler for all,\n"
                                "or 'asio', a steady_timer for each")
                     ->check(CLI::IsMember({"rondo", "asio"}))
                     ->type_name("WHICH");
  auto* trace = app.add_option("--trace", chosen.trace,
                               "Write what Rondo's scheduler did to this file, which\nui.perfetto.dev opens")
                    ->type_name("FILE")
                    ->always_capture_default(false);
  app.add_flag("--compare", chosen.compare, "Run both in turn, and show their figures side by side")
      ->excludes(timers)
      ->excludes(trace);
  if (const std::optional<int> status = common::read(app, argc, argv)) return {chosen, status};
  for (std::size_t i = 0; i < phases; ++i) chosen.limits[i] = std::chrono::milliseconds(limits[i]);
  if (with == "asio") chosen.with = timers::asio;
  if (with == "asio" && !chosen.trace.empty()) {
    fmt::print(stderr, "http_timeouts: --trace: Asio's timers are not traced\n");
    return {chosen, 2};
  }
  return {chosen, std::nullopt};
}

}  // namespace http_timeouts
