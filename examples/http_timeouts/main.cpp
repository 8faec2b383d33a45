// An HTTP server with three timeouts per connection, either on one Rondo scheduler or with an Asio timer for each, and
// the load that shows what they cost and whether they fire in time.
//
//   options          the command line
//   timeouts         the two kinds of timeouts: the part to copy
//   connection       reads requests, answers, and is closed by a timeout; Boost.Beast parses
//   server           accepts connections, measures itself, and reports; a process of its own
//   regular_clients  send requests at the chosen rate
//   slow_clients     must be cut off, and check when they are
//   loopback         sockets and epoll for both kinds of clients (descriptor: owns a file descriptor)
//   run              one run of all of these, and its faults
//   summary          prints the figures
// Code shared with other examples is in ../common. README.md shows the figures.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "run.hpp"
#include "summary.hpp"

namespace http_timeouts {
namespace {

// Returns the exit status.
int run_all(options chosen) {
  if (const std::optional<std::string> lack = lack_for(chosen)) {
    fmt::print(stderr, "http_timeouts: {}\n", *lack);
    return 2;
  }
  print_plan(chosen);
  std::vector<outcome> all;
  int status = 0;
  const std::vector<timers> kinds =
      chosen.compare ? std::vector{timers::rondo, timers::asio} : std::vector{chosen.with};
  for (const timers each : kinds) {
    chosen.with = each;
    all.push_back(run(chosen));
  }
  print_summary(chosen, all);
  for (const outcome& each : all) {
    for (const std::string& fault : faults_of(chosen, each)) {
      fmt::print("FAILED: {}: {}\n", each.with == timers::rondo ? "rondo" : "asio", fault);
      status = 1;
    }
  }
  return status;
}

}  // namespace
}  // namespace http_timeouts

int main(int argc, char** argv) {
  const auto [chosen, exit_status] = http_timeouts::read_command_line(argc, argv);
  if (exit_status) return *exit_status;
  try {
    return http_timeouts::run_all(chosen);
  } catch (const std::exception& bad) {
    fmt::print(stderr, "http_timeouts: {}\n", bad.what());
    return 1;
  }
}
