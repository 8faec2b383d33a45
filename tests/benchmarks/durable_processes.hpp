// Processes that run tasks, for benchmarks of several dispatchers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace durable_workloads {

/// They are forked when this object is created. The program must not have threads yet.
class worker_processes {
 public:
  explicit worker_processes(std::size_t n);
  ~worker_processes();  // ends them
  worker_processes(const worker_processes&) = delete;
  worker_processes& operator=(const worker_processes&) = delete;

  /// Each opens the store. Returns when all have done so, so that only the dispatchers are measured.
  void open(const std::string& url);
  /// Each creates a dispatcher on the queue "default", with the handler of `crew`.
  void start();
  /// Each stops its dispatcher.
  void stop();

  /// Of all dispatchers, since start().
  std::uint64_t completed() const;
  std::uint64_t sum() const;

 private:
  /// What a process tells this one, in memory that they share.
  struct alignas(64) told {
    std::atomic<std::uint64_t> completed, sum;
  };
  struct process {
    pid_t id;
    int commands, answers;  // ends of pipes
  };

  [[noreturn]] static void work(int commands, int answers, told& to);
  void send_all(const std::string& line) const;

  told* told_;
  std::vector<process> all_;
};

}  // namespace durable_workloads
