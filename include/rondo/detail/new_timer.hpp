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

/// One scheduling call. It takes a free record that nobody else knows, builds the callable in it, and then makes the
/// record known. So a callable is never moved. A move would cost more than its size suggests: the stores that have just
/// written the callable are narrower than the loads that copy it, so the loads would wait for the stores (18 of 80 ns
/// for schedule_after() and cancel()).
class RONDO_EXPORT RONDO_CHECKED_ABI new_timer {
 public:
  /// Throws std::invalid_argument if the callable is null, stopped_error, capacity_error, std::bad_alloc, and what
  /// copying or moving the callable throws.
  template <new_callable F>
  new_timer(const std::shared_ptr<core>& c, F&& work, kept_call_site made_at)
      : new_timer((refuse_null(work), c)) {
    task_access::build(*work_, std::forward<F>(work), made_at);
  }
  /// As above, but for a task. Throws std::invalid_argument if it is empty.
  new_timer(const std::shared_ptr<core>& c, task&& work);
  /// Destroys the callable if the timer was not scheduled.
  ~new_timer() {
    if (record_ != nullptr) discard();
  }
  new_timer(const new_timer&) = delete;
  new_timer& operator=(const new_timer&) = delete;

  /// Throws std::bad_alloc.
  void set(timer_options&& with);

  ///@{
  /// These end the call: nothing else may follow. They throw stopped_error and std::bad_alloc.
  timer_id schedule_after(duration delay);
  timer_id schedule_at(time_point due);
  timer_id schedule(const recurrence& when);
  ///@}

 private:
  explicit new_timer(const std::shared_ptr<core>&);
  timer_id made_known(timer_id) noexcept;
  void discard() noexcept;

#if defined(RONDO_CHECKS)
  const std::shared_ptr<core> kept_;  // to verify it even if the timer's task destroys the scheduler
#endif
  core& core_;
  void* record_ = nullptr;  // null once the timer is scheduled
  task* work_ = nullptr;    // in the record
};

}  // namespace rondo::detail
