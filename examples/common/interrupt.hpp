// Lets a thread wait for Ctrl-C, SIGTERM, the end of the terminal or the key q, instead of being interrupted.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace common {

class interrupt {
 public:
  using clock = std::chrono::steady_clock;

  // Create it before any thread, because threads inherit the blocked signals.
  interrupt() noexcept {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, each);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
  }
  ~interrupt() {
    if (reads_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &as_before_);
    ::close(signals_);
  }
  interrupt(const interrupt&) = delete;
  interrupt& operator=(const interrupt&) = delete;

  // From now on q counts too, if standard input is a terminal and this program runs in its foreground. Until the end,
  // keys are read without Enter, and are not shown.
  void read_keys() noexcept {
    if (isatty(STDIN_FILENO) != 1 || tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
    if (tcgetattr(STDIN_FILENO, &as_before_) != 0) return;
    termios changed = as_before_;
    changed.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    reads_keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &changed) == 0;
  }

  // Returns true as soon as the end is requested, and always from then on; false when the time has passed.
  bool wait_until(clock::time_point end) const noexcept {
    using namespace std::chrono;
    while (!asked_) {
      const auto left = std::clamp<clock::duration>(end - clock::now(), 0s, 24h);
      pollfd watched[] = {{signals_, POLLIN, 0}, {reads_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
      const int ready = poll(watched, 2, static_cast<int>(ceil<milliseconds>(left).count()));
      if (ready > 0 && watched[0].revents != 0) read_signal();
      if (ready > 0 && watched[1].revents != 0) read_key();
      if (!asked_ && clock::now() >= end) return false;
    }
    return true;
  }

  // Whether the user has lost patience and sent another signal.
  bool asked_again() const noexcept {
    pollfd signals{signals_, POLLIN, 0};
    return poll(&signals, 1, 0) > 0;
  }

  // Waits until `holds()` returns true, without a time limit, and returns false then. Returns true if the end is
  // requested first.
  template <class Condition>
  bool wait_until_true(const Condition& holds) const {
    while (!holds()) {
      if (wait_until(clock::now() + std::chrono::milliseconds(10))) return true;
    }
    return false;
  }

 private:
  void read_signal() const noexcept {
    signalfd_siginfo which;
    asked_ = ::read(signals_, &which, sizeof which) == sizeof which;
  }

  void read_key() const noexcept {
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1) {
      reads_keys_ = false;  // the terminal is gone; SIGHUP says so
    } else if (key == 'q' || key == 'Q') {
      asked_ = true;
    }
  }

  int signals_ = -1;
  termios as_before_{};
  mutable bool reads_keys_ = false;
  mutable bool asked_ = false;
};

}  // namespace common
