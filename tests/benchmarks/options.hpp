// The command line of the benchmark programs.
#pragma once

#include <string>

namespace measure {

struct options {
  bool small = false;      // run for a moment only, to test that everything works
  int repetitions = 5;     // of each contender, at most
  std::string only;        // run the workloads whose names contain this
  std::string contenders;  // run the contenders whose names contain this
  std::string json;        // file to write, if any
  std::string svg;         // folder to write charts to, if any
};

/// Ends the program if the arguments are wrong or ask for help.
options read_options(int argc, char** argv);

}  // namespace measure
