// Several threads on one processor.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

#include <cstddef>

namespace rondo::test {

/// During its lifetime this thread, and those it starts, run on one processor only, where the system supports that.
class one_processor {
 public:
  one_processor() {
#if defined(__linux__)
    sched_getaffinity(0, sizeof all_, &all_);
    for (std::size_t i = 0; i != CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &all_)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
#endif
  }
  ~one_processor() {
#if defined(__linux__)
    sched_setaffinity(0, sizeof all_, &all_);
#endif
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;

 private:
#if defined(__linux__)
  cpu_set_t all_;
#endif
};

}  // namespace rondo::test
