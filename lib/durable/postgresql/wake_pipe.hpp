// Wakes a thread that is in poll().
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
      throw std::system_error(errno, std::generic_category(), "rondo: a pipe");
  }
  ~wake_pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  wake_pipe(const wake_pipe&) = delete;
  wake_pipe& operator=(const wake_pipe&) = delete;

  /// From any thread. A full pipe is as good as one more byte.
  void wake() noexcept {
    while (::write(ends_[1], "", 1) < 0 && errno == EINTR) {
    }
  }

  /// To be polled: readable after wake().
  int descriptor() const noexcept { return ends_[0]; }

  /// Whether wake() was called since the last time.
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
