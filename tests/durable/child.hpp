// Another process, for tests of several processes on one database.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <system_error>

namespace durable_test {

/// Runs `work` in another process. `work` returns whether it succeeded; an exception counts as a failure.
class child {
 public:
  template <class Function>
  explicit child(Function work) : pid_(fork()) {
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ != 0) return;
    bool right = false;
    try {
      right = work();
    } catch (const std::exception& e) {
      std::cerr << "In another process: " << e.what() << std::endl;
    }
    _exit(right ? 0 : 1);
  }
  ~child() { succeeded(); }
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  /// Waits for the process to end.
  bool succeeded() {
    if (pid_ != 0) waitpid(pid_, &status_, 0);
    pid_ = 0;
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

 private:
  pid_t pid_;  // 0 once it has ended
  int status_ = 0;
};

}  // namespace durable_test
