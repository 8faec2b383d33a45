// Processes that run the tasks of a store, and what they write down: for tests in which they are killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace durable_test {

/// One line of a journal, into which several processes write.
struct record {
  enum kind_of : char {
    begin = 'B',
    end = 'E',
    failure = 'F',  // the handler throws
    stop =
        'S',  // of the process; `id` says how many leases it has lost, `fence` how many tasks it has completed
  };

  char kind;
  pid_t process;
  std::int64_t id, fence;
  int attempt;
  std::chrono::steady_clock::time_point at;  // the same clock in all processes
};

/// In the order in which they were written. A line that is being written is left out.
std::vector<record> read_journal(const std::string& file);

/// A process with a dispatcher on the queue "default". The payload of a task is the number of milliseconds that its run
/// takes; after that may stand " fails": then its first attempt does.
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
  /// It stops its dispatcher. Returns whether it ended in good order.
  bool stop();

  /// Signals that move its wall clock an hour forward, and two hours back.
  static const int clock_forward, clock_back;

 private:
  pid_t id_ = 0;  // 0: has ended
};

/// What main() of a program with worker processes calls first. Does not return in those.
void be_worker_if_asked(int argc, char** argv);

/// A time in which a process was halted, or (0) the server crashed and came back.
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
  /// What two runs of a task are not to look like, in words. Empty: all is as it should be. A second run has a greater
  /// fence, and begins after the first has failed, or its lease has run out. That is counted from before the beginning
  /// which was written down, by a third of it at most. Runs between which, or a lease before which, lies an interruption are
  /// excepted: a process that is halted writes down a beginning late, and a server that crashes may forget the end of a run.
  std::string wrong_runs(std::chrono::milliseconds lease,
                         const std::vector<interruption>& interruptions = {}) const;
};

}  // namespace durable_test
