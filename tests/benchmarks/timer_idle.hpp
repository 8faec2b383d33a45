// Counts how often a driver thread wakes up for nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "timer_workloads.hpp"

/// The threads of this process, by their Linux ids; empty on other systems.
inline std::set<std::string> threads_now() {
  std::set<std::string> threads;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none))
    threads.insert(task.path().filename());
  return threads;
}

/// How often the thread has voluntarily given up its processor. A sleeping thread does so once per wake-up.
inline std::uint64_t sleeps_of(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string word; status >> word;) {
    if (word != "voluntary_ctxt_switches:") continue;
    std::uint64_t count = 0;
    status >> count;
    return count;
  }
  return 0;
}

/// Timers of which one is pending and not yet due, and the threads that they started.
class idle_timers {
 public:
  template <class Make>
  idle_timers(std::string name, Make make) : name_(std::move(name)) {
    const std::set<std::string> before = threads_now();
    timers_ = make();
    for (const std::string& thread : threads_now())
      if (!before.contains(thread)) threads_.push_back(thread);
  }

  const std::string& name() const noexcept { return name_; }
  std::uint64_t sleeps() const {
    std::uint64_t sum = 0;
    for (const std::string& thread : threads_) sum += sleeps_of(thread);
    return sum;
  }

 private:
  std::string name_;
  std::shared_ptr<void> timers_;
  std::vector<std::string> threads_;
};

template <template <class> class Timers>
idle_timers idle(std::string name, milliseconds delay) {
  return idle_timers(std::move(name), [=] {
    const auto timers = std::make_shared<Timers<ignore_firing>>(std::size_t{1}, ignore_firing{});
    timers->set(0, delay);
    return timers;
  });
}
