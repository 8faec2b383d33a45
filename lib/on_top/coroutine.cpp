// How adapters and coroutines cancel, and how coroutines wait.
#include <rondo/detail/canceller.hpp>
#ifdef __cpp_impl_coroutine
#include <rondo/coroutine.hpp>
#endif

#include "scheduler/core.hpp"

namespace rondo::detail {

canceller::canceller(const scheduler& s) noexcept : core_(core_access::of(s)) {}

cancel_result canceller::cancel(timer_id id) const {
  const auto core = core_.lock();
  if (core == nullptr) return cancel_result::gone;
  [[maybe_unused]] const checked_call checked{*core, "cancel()"};
  return core->cancel(id);
}

#ifdef __cpp_impl_coroutine

constexpr kept_call_site nowhere = kept_call_site::none();  // no place in the user's code

/// The task. Resumes the coroutine when the task runs, or when it is destroyed without having run.
class wait::wake_up {
 public:
  explicit wake_up(std::shared_ptr<wait> w) noexcept : wait_(std::move(w)) {}
  wake_up(wake_up&&) noexcept = default;
  wake_up& operator=(wake_up&&) = delete;
  ~wake_up() {
    // If the phase is `starting`, schedule_after() has thrown, or begin() continues as if it had.
    if (wait_ != nullptr && wait_->end(phase::dropped) == phase::suspended) wait_->waiting_.resume();
  }

  void operator()() const {
    const phase before = wait_->end(phase::slept);
    if (before == phase::starting || before == phase::suspended) wait_->waiting_.resume();
  }

 private:
  std::shared_ptr<wait> wait_;  // null if moved from
};

/// Sets the phase unless the wait has ended. Returns the previous phase.
///
/// Memory order: whoever ends a suspended wait finds what was written before suspend(): the timer's id.
wait::phase wait::end(phase how) noexcept {
  phase before = phase_.load(std::memory_order_relaxed);
  while (before == phase::starting || before == phase::suspended)
    if (phase_.compare_exchange_weak(before, how, std::memory_order_acquire)) break;
  return before;
}

// The copies keep the wait alive: the coroutine, which owns `w`, may be destroyed as soon as the task is scheduled.
// NOLINTBEGIN(performance-unnecessary-copy-initialization)

bool wait::begin(const std::shared_ptr<wait>& w, duration delay) {
  const std::shared_ptr<wait> kept = w;
  if (kept->phase_.load(std::memory_order_relaxed) != phase::starting) return false;  // asked to stop already
  kept->id_ = kept->scheduler_->schedule_after(delay, {wake_up(kept), nowhere});
  return kept->suspend();
}

bool wait::begin(const std::shared_ptr<wait>& w, time_point due) {
  const std::shared_ptr<wait> kept = w;
  if (kept->phase_.load(std::memory_order_relaxed) != phase::starting) return false;
  kept->id_ = kept->scheduler_->schedule_at(due, {wake_up(kept), nowhere});
  return kept->suspend();
}
// NOLINTEND(performance-unnecessary-copy-initialization)

/// Called when the task is scheduled. From now on, the caller that ends the wait resumes the coroutine. Returns false
/// if the wait has ended during `starting` and the coroutine must continue at once.
bool wait::suspend() noexcept {
  phase before = phase::starting;
  if (phase_.compare_exchange_strong(before, phase::suspended, std::memory_order_release)) return true;
  if (before == phase::asked || before == phase::abandoned) cancel_timer();
  return before == phase::slept || before == phase::abandoned;
}

void wait::cancel_timer() const {
  const timer_id id = id_;  // g++'s thread sanitizer sees no access in the evaluation of an argument
  timers_.cancel(id);
}

void wait::ask(const std::shared_ptr<wait>& w) noexcept {
  // The coroutine destroys the callback that called this.
  const std::shared_ptr<wait> kept = w;  // NOLINT(performance-unnecessary-copy-initialization)
  if (kept->end(phase::asked) != phase::suspended) return;
  kept->cancel_timer();
  kept->waiting_.resume();
}

void wait::abandon() noexcept {
  if (end(phase::abandoned) == phase::suspended) cancel_timer();
}

bool wait::slept() const {
  const phase last = phase_.load(std::memory_order_relaxed);
  if (last == phase::dropped) throw stopped_error("rondo: a sleep was dropped before its deadline");
  return last == phase::slept;
}

#endif  // __cpp_impl_coroutine

}  // namespace rondo::detail
