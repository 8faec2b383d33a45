// Wakes a thread that waits in poll().
#pragma once

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace rondo::durable::detail::postgresql {

class wake_pipe {
 public:
  wake_pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::system_error(errno, std::generic_category(), "rondo: cannot create a pipe");
  }
  ~wake_pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  wake_pipe(const wake_pipe&) = delete;
  wake_pipe& operator=(const wake_pipe&) = delete;

  /// May be called from any thread. If the pipe is full, the thread wakes anyway.
  void wake() noexcept {
    while (::write(ends_[1], "", 1) < 0 && errno == EINTR) {
    }
  }

  /// The descriptor to poll: readable after wake().
  int descriptor() const noexcept { return ends_[0]; }

  /// Whether wake() was called since the last call of woken().
  bool woken() noexcept {
    std::array<char, 64> some{};
    bool any = false;
    for (;;) {
      const auto got = ::read(ends_[0], some.data(), some.size());
      if (got > 0)
        any = true;
      else if (got == 0 || errno != EINTR)
        return any;
    }
  }

 private:
  std::array<int, 2> ends_{};
};

}  // namespace rondo::durable::detail::postgresql
