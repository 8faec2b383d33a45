// Keeps signals away from threads of the library.
#pragma once

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>

#include <csignal>
#endif

namespace rondo::detail {

/// While it lives, the calling thread blocks all signals but the synchronous ones, and the threads that it starts
/// inherit that: at no moment can one of them take a signal that is meant for the user's threads. The destructor
/// restores the calling thread's mask. (A synchronous signal that is blocked would kill the process without calling
/// its handler.) Where there are no POSIX signals it does nothing.
class signals_blocked {
 public:
#if defined(__unix__) || defined(__APPLE__)
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
#if defined(__unix__) || defined(__APPLE__)
  sigset_t before_;
#endif
};

}  // namespace rondo::detail
