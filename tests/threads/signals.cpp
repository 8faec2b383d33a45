// Signals to the process are handled by the user's threads, never by the driver.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "threads/child.hpp"
#include "threads/no_threads.hpp"
#include "threads/patience.hpp"

namespace threads_signals {

using namespace rondo;
using namespace rondo::test;

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : signals) sigaddset(&set, s);
  return set;
}

sigset_t mask_of_this_thread() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

std::vector<int> signals_in(const sigset_t& set) {
  std::vector<int> found;
  for (int s = 1; s != NSIG; ++s) {
    if (sigismember(&set, s) == 1) found.push_back(s);
  }
  return found;
}

/// During its lifetime this thread blocks `mask` and nothing else.
class masked {
 public:
  explicit masked(const sigset_t& mask) { pthread_sigmask(SIG_SETMASK, &mask, &before_); }
  ~masked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  masked(const masked&) = delete;
  masked& operator=(const masked&) = delete;

 private:
  sigset_t before_;
};

TEST_CASE("the driver blocks all signals but the synchronous ones, whatever its creator blocks") {
  sigset_t expected;
  sigfillset(&expected);
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&expected, s);
  for (const int s : {SIGKILL, SIGSTOP}) sigdelset(&expected, s);  // these cannot be blocked
  for (const auto& makers : {set_of({}), set_of({SIGUSR2, SIGSEGV})}) {
    const masked while_it_lives(makers);
    sigset_t found;
    gate ran;
    timer t;
    t.schedule_after(0s, [&] {
      found = mask_of_this_thread();
      ran.open();
    });
    REQUIRE(ran.wait());
    CHECK(signals_in(found) == signals_in(expected));
  }
}

TEST_CASE("the thread that creates a timer keeps its signal mask") {
  const masked while_it_lives(set_of({SIGUSR2}));
  const auto before = signals_in(mask_of_this_thread());
  const timer t;
  CHECK(signals_in(mask_of_this_thread()) == before);
#if defined(__GLIBC__)
  {
    const no_threads to_be_had;
    CHECK_THROWS_AS(timer(), std::system_error);
  }
  CHECK(signals_in(mask_of_this_thread()) == before);
#endif
}

#if !defined(RONDO_TEST_CHILD_HAS_NO_THREADS)

TEST_CASE("a program can block a signal after it has created a timer, and wait for it") {
  CHECK(in_child([] {
          signal(SIGTERM, SIG_DFL);
          timer t;
          const sigset_t term = set_of({SIGTERM});
          pthread_sigmask(SIG_BLOCK, &term, nullptr);
          kill(getpid(), SIGTERM);
          int taken = 0;
          return first_wrong({sigwait(&term, &taken) == 0, taken == SIGTERM});
        }) == "");
}

std::atomic<int> calls_of_handler;
std::atomic<bool> handled_elsewhere;
pthread_t expected_handler;

void handler(int) {
  if (!pthread_equal(pthread_self(), expected_handler)) handled_elsewhere = true;
  ++calls_of_handler;
}

TEST_CASE("a handler that was installed after a timer was created does not run on its driver") {
  CHECK(in_child([] {
          gate sent;
          timer t;
          expected_handler = pthread_self();
          signal(SIGUSR1, &handler);
          const sigset_t usr1 = set_of({SIGUSR1});
          pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
          t.schedule_after(0s, [&] { kill(getpid(), SIGUSR1); });
          t.schedule_after(1ms, [&] { sent.open(); });
          const bool was_sent = sent.wait();
          const bool was_early = calls_of_handler != 0;
          pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
          return first_wrong({was_sent, !was_early, calls_of_handler == 1, !handled_elsewhere});
        }) == "");
}

#endif

}  // namespace threads_signals
