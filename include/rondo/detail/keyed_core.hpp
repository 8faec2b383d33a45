// keyed_timers, without the map of its keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/executor.hpp>
#include <rondo/export.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::detail {

/// The state of one key. Guarded by the mutex of keyed_core. Only the scheduler knows whether a timer is pending.
struct keyed_entry {
  timer_id
      current;  // the last timer that was set, until it has ended and its callable is destroyed; then none
  std::uint32_t timers =
      0;  // `current` and earlier ones whose tasks are in progress; at 0 the key is forgotten

  bool unused() const noexcept { return timers == 0; }
  void add(timer_id id) noexcept {
    current = id;
    ++timers;
  }
  void remove(timer_id id) noexcept {
    if (current == id) current = timer_id{};
    --timers;
  }
};

struct record;
class RONDO_EXPORT RONDO_CHECKED_ABI keyed_call;
class keyed_wait;

/// All timers of a keyed_timers. They form one group. Each timer's tag is the place of its key in the map.
///
/// A call looks up the key, asks the scheduler and notes the result under one mutex, so the calls for a key are
/// serialised. Anything that may run user code happens after the mutex is unlocked: see keyed_call.
class RONDO_EXPORT keyed_core : public std::enable_shared_from_this<keyed_core> {
 public:
  explicit keyed_core(const scheduler&);
  keyed_core(const keyed_core&) = delete;
  keyed_core& operator=(const keyed_core&) = delete;

  void clear();
  void close();

  /// Whether the entry has a pending timer. Precondition: the mutex is locked.
  bool has_timer(const keyed_entry&) const;
  /// The exact deadline that the entry's timer waits for. Precondition: as above.
  std::optional<time_point> due(const keyed_entry&) const;

 protected:
  virtual ~keyed_core();

  mutable std::mutex mutex_;

 private:
  friend class keyed_call;
  friend class keyed_wait;
  class group;

  /// Called when a timer with that tag has ended and its callable is destroyed. No lock is held.
  virtual void left(void* tag, timer_id) noexcept = 0;

  const std::unique_ptr<group> group_;
};

/// One call for a key. It is created before the mutex is locked and destroyed after the mutex is unlocked. Its
/// destructor destroys the callable of a timer that has ended, and wakes the driver.
class RONDO_EXPORT RONDO_CHECKED_ABI keyed_call {
 public:
  /// A call that cancels or moves a timer.
  explicit keyed_call(keyed_core&);
  /// A call that sets a timer. Takes a record that nobody knows yet and stores the task in it. Throws
  /// std::invalid_argument if the task is empty, stopped_error, std::bad_alloc, and what copying or moving the callable
  /// throws.
  template <class F>
  keyed_call(keyed_core& keys, F&& work, kept_call_site made_at) : keyed_call((refuse_empty(work), keys)) {
    task_access::store(take_record(), std::forward<F>(work), made_at);
  }
  /// Sets the options of the timer to be set. Throws std::bad_alloc.
  void set_options(timer_options&& with);
  ~keyed_call();
  keyed_call(const keyed_call&) = delete;
  keyed_call& operator=(const keyed_call&) = delete;

  ///@{
  /// When the timer to be set or moved is due.
  void due_after(duration delay) noexcept;
  void due_at(time_point due) noexcept { due_ = due; }
  void due_as(const recurrence& when);
  ///@}

  // Preconditions of these: the mutex is locked, and none of the others was called.

  /// Throws stopped_error, capacity_error and std::bad_alloc; strong guarantee.
  void set(keyed_entry&, void* tag);
  /// Throws std::bad_alloc; strong guarantee.
  bool reschedule(const keyed_entry&);
  cancel_result cancel(keyed_entry&) noexcept;

 private:
  task& take_record();
  void forget_ended(keyed_entry&, timer_id) noexcept;

  keyed_core& keys_;
  const time_point now_;
  time_point due_;
  record* record_ = nullptr;  // of the timer to be set
  record* ended_ = nullptr;   // the record of a timer that has ended: what it owns must be destroyed
  bool wakes_ = false;        // the driver must be woken
};

/// What cancel_and_wait() waits for: timers of one key that have been cancelled or replaced but have not ended. Created
/// before the mutex is locked.
class RONDO_EXPORT keyed_wait {
 public:
  explicit keyed_wait(keyed_core& keys) noexcept : keys_(keys) {}
  ~keyed_wait();
  keyed_wait(const keyed_wait&) = delete;
  keyed_wait& operator=(const keyed_wait&) = delete;

  /// Notes what wait() waits for: the timers that the key has now, unless the caller is inside one of their runs.
  /// Preconditions: the mutex is locked, a keyed_call has cancelled the key's timer under it, and note() was not
  /// called.
  void note(const keyed_entry&, const void* tag) noexcept;
  /// Preconditions: the mutex is not locked, and that keyed_call is over.
  void wait();

 private:
  class members;
  timer_id next();

  keyed_core& keys_;
  timer_id current_;
  const void* tag_ = nullptr;
  members* replaced_ = nullptr;                       // in room_; null if all replaced timers have ended
  alignas(void*) std::byte room_[4 * sizeof(void*)];  // so that cancelling needs no memory
};

}  // namespace rondo::detail
