// The listings of recipes.md about an orderly end on SIGTERM.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rondo/timer.hpp>

namespace readme_sigterm {

using namespace std::chrono_literals;

std::vector<std::string> saved;
void save(const rondo::unfired& left) { saved.push_back(left.name); }

/// Blocks the signals that end the program. Create it first in main(), because threads inherit the mask.
class end_signals {
 public:
  end_signals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() {
    int signal = 0;
    ::sigwait(&set_, &signal);
  }

 private:
  ::sigset_t set_;
};

void end(rondo::scheduler& timer, rondo::duration grace) {
  if (timer.drain(grace)) return;        // ends periodic timers; the others may still fire within `grace`
  if (const auto left = timer.stop(5s))  // waits at most 5 s for tasks in progress
    for (const rondo::unfired& u : *left) save(u);
}

TEST_CASE("an orderly end on SIGTERM") {
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before);
  saved.clear();
  int beats = 0;
  bool flushed = false;
  const auto grace = 100ms;

  end_signals signals;
  rondo::timer timer;
  timer.schedule_every(5ms, [&] {
    if (++beats == 3) ::kill(::getpid(), SIGTERM);
  });
  timer.schedule_after(40ms, [&] { flushed = true; });
  timer.schedule_after(1h, [] {}, {.name = "invoice 17"});
  signals.wait();
  end(timer, grace);

  CHECK(beats >= 3);
  CHECK(flushed);
  CHECK(saved == std::vector<std::string>{"invoice 17"});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace readme_sigterm
