// The options of the command line.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace http_timeouts {

// What a connection is doing, which decides which of its timeouts are set.
enum class phase : unsigned char {
  idle,     // no byte of a request has arrived
  header,   // from the first byte of a request to the end of its header
  request,  // from the first byte of a request to the end of the response
};
inline constexpr std::size_t phases = 3;
constexpr std::size_t index_of(phase p) noexcept { return static_cast<std::size_t>(p); }

enum class timers { rondo, asio };

struct options {
  std::size_t connections = 10'000;
  std::size_t slow = 100;
  unsigned rate = 10'000;  // requests per second, of all connections together; 0: as fast as possible
  unsigned seconds = 6;
  std::array<std::chrono::milliseconds, phases> limits{
      std::chrono::milliseconds(3000), std::chrono::milliseconds(1000), std::chrono::milliseconds(2000)};
  timers with = timers::rondo;
  bool compare = false;
  std::string trace;  // the file for it; empty: none

  std::chrono::milliseconds limit(phase p) const noexcept { return limits[index_of(p)]; }
};

// The options or, if there is nothing to run, the exit status: 0 after --help, 2 after a bad option, which has been
// reported.
struct command_line {
  options chosen;
  std::optional<int> exit_status;
};
command_line read_command_line(int argc, char** argv);

}  // namespace http_timeouts
