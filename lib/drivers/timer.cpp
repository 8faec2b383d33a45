#include <rondo/timer.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "drivers/driver_thread.hpp"
#include "drivers/fork_watch.hpp"
#include "platform.hpp"
#include "scheduler/core.hpp"

#if RONDO_HAS_SIGNAL_MASKS || RONDO_HAS_THREAD_NAMES
#include <pthread.h>

#include <csignal>
#endif
#if RONDO_HAS_TIMER_SLACK
#include <sys/prctl.h>
#endif

namespace rondo {
namespace detail {
namespace {

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

void prepare_this_thread([[maybe_unused]] const std::string& name) noexcept {
#if RONDO_HAS_THREAD_NAMES
  constexpr std::size_t longest = 15;  // longer names are refused, not truncated
  pthread_setname_np(pthread_self(), name.substr(0, longest).c_str());
#endif
#if RONDO_HAS_TIMER_SLACK
  // By default, the kernel may wake a sleeping thread up to 50 us late, to wake several threads at a time.
  prctl(PR_SET_TIMERSLACK, 1UL);
#endif
}

options checked(options o) {
  if (o.propagate_exceptions)
    throw std::invalid_argument(
        "rondo: options::propagate_exceptions is true, but the thread of a timer has no caller to throw to");
  return o;
}

}  // namespace

/// A core in real time, driven by its own thread.
class thread_core final : public core {
 public:
  explicit thread_core(options o) : core(o, scheduler::clock::now()), name_(std::move(o.name)) {}

  void start_driver() {
    const signals_blocked inherited;
    try {
      driver_ = std::thread([self = std::static_pointer_cast<thread_core>(shared_from_this())] {
        prepare_this_thread(self->name_);
        drive(*self, self->alarm_);
      });
    } catch (const std::system_error& e) {
      throw std::system_error(e.code(), "rondo: the driver thread \"" + name_ + "\" cannot be started");
    }
  }

  time_point now() const noexcept override { return scheduler::clock::now(); }

 protected:
  void next_due_moved_earlier() noexcept override { alarm_.ring(); }
  std::uint64_t wakeups() const noexcept override { return alarm_.wakeups(); }

  void end_driver() noexcept override {
    if (abandoned()) {
      for_ever_ = shared_from_this();  // its state is unknown, so nothing is destroyed
      return;
    }
    if (!driver_.joinable()) return;
    if (driver_.get_id() == std::this_thread::get_id())  // destroyed by its own task: ends by itself
      driver_.detach();
    else
      driver_.join();
  }

 private:
  const std::string name_;
  alarm alarm_;
  std::thread driver_;
  std::shared_ptr<void> for_ever_;
  const fork_watch forks_{[](void* self) noexcept { static_cast<thread_core*>(self)->abandon(); }, this};
};

}  // namespace detail

timer::timer(options o) : timer(std::make_shared<detail::thread_core>(detail::checked(std::move(o)))) {}

timer::timer(const std::shared_ptr<detail::thread_core>& core) : scheduler(core) { core->start_driver(); }

timer::~timer() = default;

}  // namespace rondo
