// The resources that this process has used.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace common {

// The processor time of all its threads, including time in the kernel.
inline std::chrono::nanoseconds processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// The processor time of the thread with this name; zero if there is none.
inline std::chrono::nanoseconds processor_time_of(const std::string& thread) {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(each.path() / "comm") >> std::ws, name);
    std::uint64_t nanoseconds = 0;
    if (name == thread && std::ifstream(each.path() / "schedstat") >> nanoseconds)
      return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
  }
  return {};
}

// In bytes.
inline std::uint64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace common
