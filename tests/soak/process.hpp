// What the system reports about this process.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace soak {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
#else
constexpr bool is_sanitized = false;
#endif

/// In MiB; 0 if there is no /proc.
inline double resident_memory() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return file ? resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20) : 0;
}

struct usage {
  double cpu_seconds;
  long voluntary_switches;
};

inline usage used_so_far() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(u.ru_utime) + seconds(u.ru_stime), u.ru_nvcsw};
}

}  // namespace soak
