// All of keyed_timers but for the map of its keys.
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

/// What there is of one key. Guarded by the core's mutex.
struct keyed_entry {
  std::shared_ptr<keyed_value> current;  // what was set last, if it has not ended; it may be running
  std::size_t replaced = 0;              // values that were current before and have not ended
  std::size_t users = 0;                 // timers and calls: when there is none left the entry goes
};

/// What keyed_timers does with an entry, once the key is found.
///
/// Each set is a timer of its own, and what it was set to becomes current once that timer exists: at the end
/// of the call or, if that is earlier, as the task starts. The scheduler alone decides, and is asked, whether
/// a timer is pending, running or gone. No lock is held while it is called, as its calls may run the user's
/// code; but for pending(), which does not.
class RONDO_EXPORT keyed_core : public std::enable_shared_from_this<keyed_core> {
 public:
  explicit keyed_core(scheduler&);
  keyed_core(const keyed_core&) = delete;
  keyed_core& operator=(const keyed_core&) = delete;

  // The entry is in use by the call. See rondo::keyed_timers for the rest.
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
  enum class way { none, coming, made, taken, refused };  // to a place for a new timer, at the limit

  /// Gives up one use of the entry; unlocks the mutex, which is locked.
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
  const std::shared_ptr<scope_core> scope_;  // closes only when it is told to
};

}  // namespace rondo::detail
