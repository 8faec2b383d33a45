// For Linux: a thread that sleeps in poll().
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "calendar/step_listeners.hpp"
#include "calendar/step_watch.hpp"

namespace rondo::detail {

namespace {

class descriptor {
 public:
  descriptor(int number, const char* call) : number_(number) {
    if (number < 0) throw std::system_error(errno, std::generic_category(), call);
  }
  ~descriptor() { ::close(number_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int number() const noexcept { return number_; }

  /// Reads what is there, if anything.
  void empty() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(number_, &count, sizeof count);
  }

 private:
  const int number_;
};

/// Threads started during its lifetime handle only the signals that they cause themselves.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t set;
    sigfillset(&set);
    for (const int own : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) sigdelset(&set, own);
    pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

/// Shared by the thread and its owner.
struct watch {
  watch()
      : steps(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC), "rondo: timerfd_create()"),
        end(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "rondo: eventfd()") {}

  void let_end() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(end.number(), &one, sizeof one);
  }

  /// Makes the kernel report the next step.
  void arm() const noexcept {
    itimerspec far{};
    far.it_value.tv_sec = std::numeric_limits<decltype(far.it_value.tv_sec)>::max();
    ::timerfd_settime(steps.number(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, nullptr);
  }

  void run() const noexcept {
    static constexpr int again_after = 1000;  // ms
    bool again = false;
    for (;;) {
      std::array<pollfd, 2> ready{{{steps.number(), POLLIN, 0}, {end.number(), POLLIN, 0}}};
      const int count = ::poll(ready.data(), ready.size(), again ? again_after : -1);
      if (ready[1].revents != 0) return;
      if (count < 0) continue;  // a signal
      steps.empty();
      arm();  // first, so that a step during the calls is reported too
      again = false;
      try {
        step_listeners::tell(listeners.all());
      } catch (...) {
        again = true;
      }
    }
  }

  const descriptor steps;
  const descriptor end;
  step_listeners listeners;
};

/// Owns the thread.
class watcher {
 public:
  explicit watcher(std::function<void()> stepped)
      : watch_(std::make_shared<watch>()), listener_(watch_->listeners.add(std::move(stepped))) {
    watch_->arm();
    const signals_blocked meanwhile;
    thread_ = std::thread([shared = watch_] {
      pthread_setname_np(pthread_self(), "rondo-clock");
      shared->run();
    });
  }
  /// In a child made by fork(), there is no such thread; the parent's has the same descriptors, and goes on.
  ~watcher() {
    const bool is_copy = getpid() != process_;
    if (!is_copy) watch_->let_end();
    if (is_copy || thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

 private:
  const pid_t process_ = getpid();
  const std::shared_ptr<watch> watch_;
  const std::shared_ptr<void> listener_;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<void> watch_steps(std::function<void()> stepped) {
  return std::make_shared<watcher>(std::move(stepped));
}

}  // namespace rondo::detail
