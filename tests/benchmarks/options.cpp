#include "options.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace measure {

namespace {

[[noreturn]] void explain(const char* program, int status) {
  std::fprintf(
      status == 0 ? stdout : stderr,
      "%s [--small] [--repetitions N] [--only TEXT] [--contenders TEXT] [--json FILE] [--svg FOLDER]\n"
      "  --small            run for a moment only, as a test\n"
      "  --repetitions N    run each contender at most N times (5); slow ones run fewer times\n"
      "  --only TEXT        run the workloads whose names contain TEXT\n"
      "  --contenders TEXT  run the contenders whose names contain TEXT\n"
      "  --json FILE        write the results as JSON\n"
      "  --svg FOLDER       write a chart for each workload\n",
      program);
  std::exit(status);
}

}  // namespace

options read_options(int argc, char** argv) {
  options read;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help") explain(argv[0], 0);
    if (option == "--small") {
      read.small = true;
      read.repetitions = 1;
      continue;
    }
    if (++i == argc) explain(argv[0], 2);
    if (option == "--repetitions") {
      read.repetitions = std::atoi(argv[i]);
      if (read.repetitions < 1) explain(argv[0], 2);
    } else if (option == "--only") {
      read.only = argv[i];
    } else if (option == "--contenders") {
      read.contenders = argv[i];
    } else if (option == "--json") {
      read.json = argv[i];
    } else if (option == "--svg") {
      read.svg = argv[i];
    } else {
      explain(argv[0], 2);
    }
  }
  return read;
}

}  // namespace measure
