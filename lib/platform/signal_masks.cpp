// A thread's mask of POSIX signals.
#include <pthread.h>
#include <csignal>

int main() {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_SETMASK, &all, nullptr) + SIGSYS;
}
