// The scheduler for an event loop of one's own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

namespace rondo {

namespace detail {
class polled_core;
}

/// A scheduler in real time that has no thread: your loop calls poll().
///
///     rondo::polled_timer timer;
///     timer.on_earlier([&] { loop.wake(); });           // only if other threads schedule
///     for (;;) {
///       loop.wait_until(timer.next_due());              // none: for ever
///       timer.poll();
///     }
///
/// Only poll() and drain() run tasks, on the thread that calls them.
class RONDO_EXPORT polled_timer final : public scheduler {
 public:
  /// std::invalid_argument as options says.
  explicit polled_timer(options = {});
  /// As that of scheduler.
  ~polled_timer() override;

  /// One pass: runs what is due by now (or hands it over, if there is an executor), at most `limit` of it,
  /// and returns how many that were. What tasks make due meanwhile is for the next call, so that a loop is
  /// never held up for ever; what a limit has left over comes first then. Never waits. One thread at a time:
  /// a second one waits for its turn. From inside: std::logic_error. Throws std::bad_alloc: nothing is lost,
  /// call again.
  std::size_t poll(std::size_t limit = unlimited);

  /// `f` is told, on the thread that caused it and with no lock held, when next_due() moves earlier: then a
  /// loop that sleeps is to ask next_due() again. It may be told more often than that, also from inside
  /// poll(); it may call the scheduler, but not poll(). Replaces the `f` before, and returns once no call of
  /// that is in progress (except from inside it). A null `f`: nobody is told. If `f` throws: `on_error`, and
  /// the call that caused it still succeeds. While the timer has an event_fd, which owns
  /// this callback: std::logic_error, and nothing changes.
  void on_earlier(std::function<void()> f);

 private:
  friend class event_fd;
  /// As on_earlier(), but until release_on_earlier() a call of either is refused.
  void reserve_on_earlier(std::function<void()> f);
  void release_on_earlier() noexcept;

  std::shared_ptr<detail::polled_core> core_;
  explicit polled_timer(std::shared_ptr<detail::polled_core>);
};

}  // namespace rondo
