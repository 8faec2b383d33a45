// Another process, for tests of what several do with one database.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <system_error>

namespace durable_test {

/// Runs `work` in a process of its own. It returns whether all was right there; what it throws was not.
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

  /// Waits for its end.
  bool succeeded() {
    if (pid_ != 0) waitpid(pid_, &status_, 0);
    pid_ = 0;
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

 private:
  pid_t pid_;  // 0: has ended
  int status_ = 0;
};

}  // namespace durable_test
