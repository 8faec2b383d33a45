// The thread that the kernel wakes when the system's clock is set. The tests cannot set that clock, so they stand in
// for the kernel. One test checks that the real kernel accepts the request.
#include "calendar/step_watch.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <rondo/calendar.hpp>

#include "threads/child.hpp"
#include "threads/patience.hpp"

namespace calendar_step_watch {

std::atomic<bool> stands_in{false};
std::atomic<int> made{-1};
std::atomic<long> armed{0};
std::atomic<int> armed_flags{0};
std::atomic<long long> armed_for{0};
std::atomic<int> settime_result{0};
std::atomic<int> fails_with{0};

// These replace the C library's functions, whatever their namespace.
extern "C" int timerfd_create(int clock, int flags) noexcept {
  if (fails_with != 0) {
    errno = fails_with;
    return -1;
  }
  if (!stands_in) return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
  REQUIRE(clock == CLOCK_REALTIME);
  REQUIRE(flags == (TFD_NONBLOCK | TFD_CLOEXEC));
  made = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return made;
}

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* at, itimerspec* old) noexcept {
  armed_flags = flags;
  armed_for = at->it_value.tv_sec;
  if (!stands_in) {
    settime_result = static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, at, old));
    ++armed;
    return settime_result;
  }
  ++armed;
  return 0;
}

using namespace rondo;
using namespace rondo::test;

/// Stands in for the kernel during its lifetime.
struct kernel {
  kernel() {
    stands_in = true;
    armed = 0;
  }
  ~kernel() {
    stands_in = false;
    fails_with = 0;
  }
  void tell() const {
    const std::uint64_t one = 1;
    REQUIRE(::write(made, &one, sizeof one) == sizeof one);
  }
};

TEST_CASE("the kernel accepts the request, and does not report a step at once") {
  armed = 0;
  gate told;
  const auto handle = detail::watch_steps([&] { told.open(); });
  CHECK(armed == 1);
  CHECK(settime_result == 0);
  let_pass(20ms);
  CHECK(told.count() == 0);
}

TEST_CASE("each step is reported, after the next one has been requested from the kernel") {
  const kernel k;
  gate told;
  std::atomic<long> armed_when_told{0};
  const auto handle = system_wall_clock().on_step([&] {
    armed_when_told = armed.load();
    told.open();
  });
  REQUIRE(handle != nullptr);
  CHECK(armed == 1);
  CHECK(armed_flags == (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET));
  CHECK(armed_for > 1LL << 40);
  for (long i = 1; i != 4; ++i) {
    k.tell();
    REQUIRE(told.wait(i));
    CHECK(armed_when_told == i + 1);
  }
}

TEST_CASE("a child that ends its copy of the handle leaves the parent's as it was") {
  const kernel k;
  gate told;
  std::shared_ptr<void> handle = detail::watch_steps([&] { told.open(); });
  CHECK(in_child([&] {
          handle.reset();
          return 0;
        }) == "");
  k.tell();
  CHECK(told.wait());
}

TEST_CASE("a listener that throws is called again after a while") {
  const kernel k;
  gate told;
  const auto handle = detail::watch_steps([&] {
    told.open();
    if (told.count() == 1) throw std::runtime_error("no memory");
  });
  const auto before = std::chrono::steady_clock::now();
  k.tell();
  REQUIRE(told.wait(2));
  CHECK(std::chrono::steady_clock::now() - before >= 900ms);
}

TEST_CASE("destroying the handle waits for a call in progress, except from inside it") {
  const kernel k;
  SUBCASE("from outside") {
    gate begun, may_end;
    int ended = 0;  // not atomic: may be read after the wait
    auto handle = detail::watch_steps([&] {
      begun.open();
      may_end.wait();
      ++ended;
    });
    k.tell();
    REQUIRE(begun.wait());
    std::thread other([&] { may_end.open(); });
    handle.reset();
    CHECK(ended == 1);
    other.join();
  }
  SUBCASE("from inside") {
    gate gone;
    std::shared_ptr<void> handle;
    handle = detail::watch_steps([&] {
      handle.reset();
      gone.open();
    });
    k.tell();
    CHECK(gone.wait());
  }
}

TEST_CASE("without a file descriptor the constructor of calendar_timers throws") {
  const kernel k;
  fails_with = EMFILE;
  timer t;
  CHECK_THROWS_AS(calendar_timers timers(t), std::system_error);
  CHECK(t.pending() == 0);
}

TEST_CASE("the thread handles no signals from outside") {
  const kernel k;
  gate told;
  std::atomic<bool> blocked{false};
  const auto handle = detail::watch_steps([&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    blocked = sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGSEGV) == 0;
    told.open();
  });
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  CHECK(sigismember(&here, SIGTERM) == 0);
  k.tell();
  REQUIRE(told.wait());
  CHECK(blocked);
}

TEST_CASE("a timer still runs while the kernel reports steps") {
  // The real clock is not set, so the reported steps change nothing; no timer may be lost between the threads.
  const kernel k;
  gate ran;
  timer t({.tick = 100us});
  calendar_timers timers(t);
  timers.schedule_at(std::chrono::system_clock::now() + 50ms, [&] { ran.open(); });
  for (int i = 0; i != 20; ++i) k.tell();
  CHECK(ran.wait());
}

}  // namespace calendar_step_watch
