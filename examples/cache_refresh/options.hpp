// The options of the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "origin.hpp"
#include "refresh_policy.hpp"

namespace cache_refresh {

struct options {
  origin_options origin;
  unsigned keys = 0;  // 0: all

  unsigned readers = 4;
  unsigned reads = 5000;  // per second, of all readers together
  bool skewed = true;
  unsigned edits = 100;  // per second
  bool warm = true;      // whether all keys are loaded at the start

  refresh_policy policy;
  std::optional<rondo::duration> soft_ttl;  // overrides what the origin says
  chaos_options chaos;

  bool compare = false;
  std::filesystem::path csv;
  std::filesystem::path svg;

  std::string listen;        // empty for no page
  double stale_limit = 0.1;  // share of the keys above which /healthz fails

  unsigned seconds = 0;  // 0: until interrupted
  std::uint64_t seed = 0;
  bool plain = false;
};

// The options or, if there is nothing to run, the exit status: 0 after --help, 2 after a bad option, which has been
// reported.
struct command_line {
  options chosen;
  std::optional<int> exit_status;
};
command_line read_command_line(int argc, char** argv);

}  // namespace cache_refresh
