// What a figure depends on besides the code. Every report states it.
#pragma once

#include <string>

namespace measure {

struct environment {
  std::string machine;       // its processor
  std::string compiler;      // with version
  std::string optimisation;  // as Meson was configured
};

environment this_environment();

}  // namespace measure
