// A timer of a scope, under construction.
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

class scope_group;

/// One scheduling call of a scope. As new_timer, but the timer becomes a member of the scope's group.
class RONDO_EXPORT RONDO_CHECKED_ABI scoped_timer {
 public:
  template <new_callable F>
  scoped_timer(const std::shared_ptr<scope_group>& group, F&& work, kept_call_site made_at)
      : scoped_timer((refuse_null(work), group)) {
    task_access::build(*work_, std::forward<F>(work), made_at);
  }
  scoped_timer(const std::shared_ptr<scope_group>& group, task&& work);
  ~scoped_timer();
  scoped_timer(const scoped_timer&) = delete;
  scoped_timer& operator=(const scoped_timer&) = delete;

  /// Throws std::bad_alloc.
  void set(timer_options&& with);

  // These end the call: nothing else may follow.
  timer_id schedule_after(duration delay);
  timer_id schedule_at(time_point due);
  timer_id schedule(const recurrence& when);

 private:
  explicit scoped_timer(std::shared_ptr<scope_group>);

  const std::shared_ptr<scope_group> group_;
  const time_point now_;
  void* record_ = nullptr;  // null once the timer is scheduled
  task* work_ = nullptr;    // in the record
};

}  // namespace rondo::detail
