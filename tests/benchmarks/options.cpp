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
      "  --small            a run of a moment, as a test\n"
      "  --repetitions N    of each contender, at most (5); slow ones are content with fewer\n"
      "  --only TEXT        the workloads whose names contain it\n"
      "  --contenders TEXT  the contenders whose names contain it\n"
      "  --json FILE        the results for machines\n"
      "  --svg FOLDER       a chart for each workload\n",
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
