// Keeps signals away from the library's threads.
#pragma once

#include "platform.hpp"

#if RONDO_HAS_SIGNAL_MASKS
#include <pthread.h>

#include <csignal>
#endif

namespace rondo::detail {

/// During its lifetime, the calling thread blocks all signals except synchronous ones. Threads that it starts inherit
/// the mask, so they never take a signal meant for the user's threads. The destructor restores the calling thread's
/// mask. (Synchronous signals stay unblocked, because a blocked one would kill the process without calling its
/// handler.) Does nothing on systems without POSIX signals.
class signals_blocked {
 public:
#if RONDO_HAS_SIGNAL_MASKS
  signals_blocked() noexcept {
    sigset_t all_others;
    sigfillset(&all_others);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
      sigdelset(&all_others, synchronous);
    pthread_sigmask(SIG_SETMASK, &all_others, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
#else
  signals_blocked() noexcept {}
#endif
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
#if RONDO_HAS_SIGNAL_MASKS
  sigset_t before_;
#endif
};

}  // namespace rondo::detail
