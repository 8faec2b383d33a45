// A timer under construction.
#pragma once

#include <memory>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

class core;
class timer_group;
struct record;

/// One scheduling call. It takes a free record that nobody else knows, builds the callable in it, and then makes the
/// record known. So a callable is never moved. A move would cost more than its size suggests: the stores that have just
/// written the callable are narrower than the loads that copy it, so the loads would wait for the stores (18 of 80 ns
/// for schedule_after() and cancel()).
class RONDO_EXPORT RONDO_CHECKED_ABI new_timer {
 public:
  /// `work` is a callable or a task; copying or moving it must not end the core or the group. The timer becomes a member of
  /// `group`, unless that is null. Throws std::invalid_argument if the task is empty, stopped_error, capacity_error,
  /// std::bad_alloc, and what copying or moving the callable throws.
  template <class F>
  new_timer(const std::shared_ptr<core>& c, timer_group* group, F&& work, kept_call_site made_at)
      : new_timer((refuse_empty(work), c), group) {
    task_access::store(*work_, std::forward<F>(work), made_at);
  }
  /// Destroys the callable if the timer was not scheduled.
  ~new_timer() {
    if (record_ != nullptr) discard();
  }
  new_timer(const new_timer&) = delete;
  new_timer& operator=(const new_timer&) = delete;

  /// Sets the options. Throws std::bad_alloc.
  new_timer& with(timer_options&&);

  ///@{
  /// These end the call: nothing else may follow. They throw stopped_error and std::bad_alloc.
  timer_id schedule_after(duration delay);
  timer_id schedule_at(time_point due);
  timer_id schedule(const recurrence& when);
  ///@}

 private:
  new_timer(const std::shared_ptr<core>&, timer_group*);
  timer_id schedule(time_point due, time_point now);
  // Not inlined: otherwise schedule() would save registers for it.
  [[gnu::noinline]] timer_id schedule_member(time_point due, time_point now);
  void discard() noexcept;

#if defined(RONDO_CHECKS)
  const std::shared_ptr<core> kept_;  // to verify it even if the timer's task destroys the scheduler
#endif
  core& core_;
  timer_group* const group_;
  record* record_;  // null once the timer is scheduled
  task* work_;      // in the record
};

}  // namespace rondo::detail
