// keyed_timers, without the map of its keys.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include <rondo/export.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

struct keyed_value;
class scope_core;

/// The state of one key. Guarded by the core's mutex.
struct keyed_entry {
  std::shared_ptr<keyed_value> current;  // the value set last, if it has not ended; it may be running
  std::size_t replaced = 0;              // replaced values that have not ended
  std::size_t users = 0;                 // timers and calls that use the entry; at 0 it is removed
};

/// What keyed_timers does with the entry of a key.
///
/// Each call that sets makes a new timer, whose value becomes current once the timer exists: at the end of the call or,
/// if that is earlier, when the task starts. Only the scheduler knows whether a timer is pending, running or gone. No
/// lock is held during its calls, which may run user code, except pending(), which does not.
class RONDO_EXPORT keyed_core : public std::enable_shared_from_this<keyed_core> {
 public:
  explicit keyed_core(scheduler&);
  keyed_core(const keyed_core&) = delete;
  keyed_core& operator=(const keyed_core&) = delete;

  // As the calls of rondo::keyed_timers. Precondition: the caller counts as a user of the entry.
  void set_at(keyed_entry&, time_point due, task&& work);
  void set(keyed_entry&, const recurrence&, task&& work);
  bool try_set_at(keyed_entry&, time_point due, task&& work);
  bool reschedule_at(keyed_entry&, time_point due);
  cancel_result cancel(keyed_entry&);
  void clear();
  void close();

  /// Whether the entry has a pending timer. Precondition: the mutex is locked.
  bool has_timer(const keyed_entry&) const;
  time_point after(duration delay) const noexcept;

 protected:
  virtual ~keyed_core();

  mutable std::mutex mutex_;

 private:
  class carrier;
  enum class way { none, coming, made, taken, refused };  // to a place for a new timer at the limit

  /// Ends one use of the entry, and unlocks the mutex. Precondition: the mutex is locked.
  virtual void leave(keyed_entry&, std::unique_lock<std::mutex>&) noexcept = 0;

  template <class Schedule>
  bool set_new(const std::shared_ptr<keyed_value>&, Schedule&&);
  way make_way(const std::shared_ptr<keyed_value>&);
  way take_over(keyed_value& old, const std::shared_ptr<keyed_value>&, std::unique_lock<std::mutex>&);
  bool establish(const std::shared_ptr<keyed_value>&, timer_id);
  void make_current(const std::shared_ptr<keyed_value>&, timer_id);
  void run(const std::shared_ptr<keyed_value>&, const firing&);
  void end(keyed_value&) noexcept;

  scheduler& scheduler_;
  const std::shared_ptr<scope_core> scope_;  // closed only by close()
};

}  // namespace rondo::detail
