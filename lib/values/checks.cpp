#include <rondo/detail/checks.hpp>

#include <cstdio>
#include <cstdlib>

namespace rondo::detail {

void die(const std::string& what) noexcept {
  static_cast<void>(std::fprintf(stderr, "rondo: %s\n", what.c_str()));
  std::abort();
}

}  // namespace rondo::detail
