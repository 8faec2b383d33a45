// Lets a thread wait for Ctrl-C, SIGTERM and the end of the terminal, instead of being interrupted by them.
#pragma once

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace common {

class interrupt {
 public:
  using clock = std::chrono::steady_clock;

  // Make it before any thread: threads inherit that the signals are blocked.
  interrupt() noexcept {
    sigemptyset(&signals_);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, each);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // True as soon as a signal has come, false when the time has passed.
  bool wait_until(clock::time_point end) const noexcept {
    using namespace std::chrono;
    while (true) {
      const auto left = std::max(end - clock::now(), clock::duration::zero());
      const auto whole = duration_cast<seconds>(left);
      const std::timespec limit{whole.count(), (left - whole).count()};
      if (sigtimedwait(&signals_, nullptr, &limit) > 0) return true;
      if (clock::now() >= end) return false;  // otherwise another signal's handler has run
    }
  }

 private:
  sigset_t signals_;
};

}  // namespace common
