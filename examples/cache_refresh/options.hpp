// The options of the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace cache_refresh {

struct options {
  std::filesystem::path database;
  std::filesystem::path catalogue = "/var/lib/dpkg/status";
  unsigned seconds = 0;  // 0: until interrupted
  unsigned keys = 0;     // 0: all
  unsigned readers = 4;
  unsigned reads = 5000;  // a second, of all readers together
  bool skewed = true;
  unsigned edits = 100;  // a second
  unsigned workers = 4;
  unsigned fail_percent = 2;
  std::uint64_t seed = 0;
  bool plain = false;
};

// The options; or, if there is nothing to run, the exit status: 0 after --help, 2 after a bad option, which it has
// reported.
struct command_line {
  options chosen;
  std::optional<int> exit_status;
};
command_line read_command_line(int argc, char** argv);

}  // namespace cache_refresh
