// What a figure depends on besides the code: named in every report.
#pragma once

#include <string>

namespace measure {

struct environment {
  std::string machine;       // its processor
  std::string compiler;      // with version
  std::string optimisation;  // as Meson was told
};

environment this_environment();

}  // namespace measure
