// The options of the command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace order_timeout {

struct options {
  std::string store;
  unsigned seconds = 0;  // 0: until interrupted
  unsigned rate = 20;    // orders per second
  unsigned pay_percent = 60;
  std::chrono::milliseconds limit{3000};  // in reality half an hour
  std::chrono::milliseconds work{20};
  std::chrono::milliseconds lease{2000};
  unsigned threads = 4;
  bool plain = false;
};

// The options or, if there is nothing to run, the exit status: 0 after --help, 2 after a bad option, which has been
// reported.
struct command_line {
  options chosen;
  std::optional<int> exit_status;
};
command_line read_command_line(int argc, char** argv);

}  // namespace order_timeout
