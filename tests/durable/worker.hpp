// Processes that run the tasks of a store and keep a journal, for tests in which they are killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace durable_test {

/// One line of a journal, to which several processes write.
struct record {
  enum kind_of : char {
    begin = 'B',
    end = 'E',
    failure = 'F',  // the handler throws
    stop = 'S',  // the process ends; `id` is the number of leases lost, `fence` the number of tasks completed
  };

  char kind;
  pid_t process;
  std::int64_t id, fence;
  int attempt;
  std::chrono::steady_clock::time_point at;  // the same clock in all processes
  std::int64_t point;                        // of a repeated task, in microseconds; otherwise 0
};

/// Returns the records in the order in which they were written, without a line that is still being written.
std::vector<record> read_journal(const std::string& file);

/// A process with a dispatcher on the queue "default". The payload of a task is the number of milliseconds that its run
/// takes. If " fails" follows the number, the first attempt fails.
class worker_process {
 public:
  struct settings {
    std::string url, journal;
    std::chrono::milliseconds lease{30'000}, window{1'000};
    int threads = 4;
  };

  explicit worker_process(const settings& s);
  ~worker_process();  // kills it
  worker_process(worker_process&& other) noexcept;
  worker_process& operator=(worker_process&& other) noexcept;

  pid_t id() const noexcept { return id_; }
  void send(int signal) const;
  void kill();
  /// Makes the process stop its dispatcher and end. Returns whether it ended in good order.
  bool stop();

  /// Signals that move its wall clock an hour forward, and two hours back.
  static const int clock_forward, clock_back;

 private:
  pid_t id_ = 0;  // 0 once it has ended
};

/// The main() of a program with worker processes must call this first. Does not return in the worker processes.
void be_worker_if_asked(int argc, char** argv);

/// A time in which a process was halted, or (if `process` is 0) the server crashed and restarted.
struct interruption {
  pid_t process;
  std::chrono::steady_clock::time_point from, to;
};

/// What happened to each task.
struct account {
  explicit account(const std::string& journal);

  struct runs {
    std::vector<record> begun;
    int ended = 0, failed = 0;
  };
  std::map<std::int64_t, runs> tasks;
  std::map<pid_t, record> stopped;

  int ended(std::int64_t id) const;
  /// Describes any wrong pairs of runs of a task; empty if there are none. A second run must have a greater fence, and
  /// must begin after the first has failed or its lease has run out. The lease is counted from before the recorded
  /// beginning, by at most a third of it. A pair is excepted if there is an interruption between the runs, or within a
  /// lease before them: a halted process records a beginning late, and a server that crashes may forget the end of a
  /// run.
  std::string wrong_runs(std::chrono::milliseconds lease,
                         const std::vector<interruption>& interruptions = {}) const;
};

}  // namespace durable_test
