#include <rondo/polled_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "drivers/driver_lock.hpp"
#include "drivers/fork_watch.hpp"
#include "scheduler/core.hpp"

namespace rondo {
namespace detail {

/// A core in real time, driven by the user's loop.
class polled_core final : public core {
 public:
  explicit polled_core(const options& o) : core(o, scheduler::clock::now()) {}

  time_point now() const noexcept override { return scheduler::clock::now(); }

  std::size_t poll(std::size_t limit) {
    refuse_inside("poll");
    const std::lock_guard driving(driver_lock_);
    return run_pass(time_point::max(), limit);
  }

  int forks = 0;  // written in the child, which has only one thread then

  /// If `reserved`, refuses further calls until release_on_earlier().
  void on_earlier(std::function<void()> f, bool reserved) {
    auto changed = f ? std::make_shared<listener>(listener{std::move(f), reserved, 0}) : nullptr;
    {
      const std::lock_guard hold(listener_mutex_);
      if (listener_ != nullptr && listener_->reserved)
        throw std::logic_error("rondo: on_earlier() belongs to the event_fd of this polled_timer");
      changed.swap(listener_);
    }
    wait_for_calls_of(changed);
  }

  void release_on_earlier() noexcept {
    std::shared_ptr<listener> old;
    {
      const std::lock_guard hold(listener_mutex_);
      old.swap(listener_);
    }
    wait_for_calls_of(old);
  }

 protected:
  void next_due_moved_earlier() noexcept override {
    endings().wake();  // a sleeping drain()
    std::shared_ptr<listener> told;
    {
      const std::lock_guard hold(listener_mutex_);
      told = listener_;
      if (told == nullptr) return;
      ++told->calls;
    }
    call_out(told.get(), told->f);
    {
      const std::lock_guard hold(listener_mutex_);
      --told->calls;
    }
    endings().wake();
  }

  void end_driver() noexcept override { release_on_earlier(); }

  bool pass_time_until_drained(duration limit) override {
    const time_point end = saturating_add(now(), limit);
    for (;;) {
      {
        const std::lock_guard driving(driver_lock_);  // released during waits, so others may poll
        run_pass(time_point::max(), unlimited);
      }
      if (drained()) return true;
      if (now() >= end) return false;
      const time_point due = next_due().value_or(time_point::max());
      endings().look_until(now(), std::min(due, end),
                           [&] { return drained() || next_due().value_or(time_point::max()) < due; });
    }
  }

 private:
  struct listener {
    std::function<void()> f;
    bool reserved;
    std::size_t calls;  // in progress
  };

  /// Waits for the calls of a replaced listener, unless the caller is inside one of them.
  void wait_for_calls_of(const std::shared_ptr<listener>& old) {
    if (old == nullptr || stack_marker::inside(this, old.get())) return;
    endings().wait_until([&] {
      const std::lock_guard hold(listener_mutex_);
      return old->calls == 0;
    });
  }

  driver_lock driver_lock_;
  std::mutex listener_mutex_;
  std::shared_ptr<listener> listener_;
  const fork_watch watch_{[](void* self) noexcept { ++static_cast<polled_core*>(self)->forks; }, this};
};

}  // namespace detail

polled_timer::polled_timer(options o) : polled_timer(std::make_shared<detail::polled_core>(o)) {}

polled_timer::polled_timer(std::shared_ptr<detail::polled_core> core)
    : scheduler(core), core_(std::move(core)) {}

polled_timer::~polled_timer() = default;

// A task may destroy the timer that is being polled: `core` keeps the core until the call is over.

std::size_t polled_timer::poll(std::size_t limit) {
  [[maybe_unused]] const detail::checked_call checked{*core_, "poll()"};
  const auto core = core_;
  return core->poll(limit);
}

void polled_timer::on_earlier(std::function<void()> f) {
  const auto core = core_;
  core->on_earlier(std::move(f), false);
}

void polled_timer::reserve_on_earlier(std::function<void()> f) { core_->on_earlier(std::move(f), true); }

void polled_timer::release_on_earlier() noexcept { core_->release_on_earlier(); }

void polled_timer::refuse_inside() const { core_->refuse_inside("poll"); }

int polled_timer::forks() const noexcept { return core_->forks; }

}  // namespace rondo
