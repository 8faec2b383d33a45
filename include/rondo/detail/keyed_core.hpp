// keyed_timers, without the map of its keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/detail/sync.hpp>
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
  timer_id current;  // the last one that was set, until it has ended and its callable is destroyed; then none
  std::uint32_t timers =
      0;  // `current` and earlier ones whose tasks are in progress; at 0 the key is forgotten

  bool unused() const noexcept { return timers == 0; }
  std::uint32_t replaced() const noexcept { return timers - (current != timer_id{} ? 1 : 0); }
  void remove(timer_id id) noexcept {
    if (current == id) current = timer_id{};
    --timers;
  }
};

struct record;
class RONDO_EXPORT RONDO_CHECKED_ABI keyed_call;

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
  /// Cancels the timer of a key, of the type Key, and waits for all timers of this key that have not ended, unless the
  /// caller is inside one of their runs. Needs no memory.
  cancel_result cancel_and_wait(const void* key);

 protected:
  struct awaited;  // the timers that cancel_and_wait() waits for

  virtual ~keyed_core();

  // Precondition of these: the mutex is locked.

  /// Whether the entry has a pending timer.
  bool has_timer(const keyed_entry&) const;
  /// The exact deadline that the entry's timer waits for.
  std::optional<time_point> due(const keyed_entry&) const;
  /// Notes the timers that the key has now, after a keyed_call has cancelled its timer under the same lock.
  void note(awaited&, const keyed_entry&, const void* tag) const noexcept;

  mutable header_sync::mutex mutex_;

 private:
  friend class keyed_call;
  class group;

  /// Cancels the key's timer, and notes its timers unless the key is forgotten.
  virtual cancel_result cancel_key(const void* key, awaited&) = 0;
  /// Called when a timer with that tag has ended and its callable is destroyed. No lock is held.
  virtual void left(void* tag, timer_id) noexcept = 0;
  timer_id next(awaited&) const;

  const std::unique_ptr<group> group_;
};

/// One call for a key. It is created before the mutex is locked and destroyed after the mutex is unlocked. Its
/// destructor destroys the callable of a timer that has ended, interrupts its runs in progress, and wakes the driver.
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
  /// Sets the options of the timer to be set. Throws std::invalid_argument if its slack is negative, and std::bad_alloc.
  void set_options(timer_options&& with);
  ~keyed_call();
  keyed_call(const keyed_call&) = delete;
  keyed_call& operator=(const keyed_call&) = delete;

  ///@{
  /// When the timer to be set or moved is due.
  void due(duration delay) noexcept;
  void due(time_point at) noexcept { due_ = at; }
  void due(const recurrence& when);
  ///@}

  // Preconditions of these: the mutex is locked, and none of the others was called.

  /// If `interrupts`, a run of the old timer that is in progress is asked to stop. Throws stopped_error, capacity_error and
  /// std::bad_alloc; strong guarantee.
  void set(keyed_entry&, void* tag, bool interrupts);
  /// Throws std::bad_alloc; strong guarantee.
  bool reschedule(const keyed_entry&);
  cancel_result cancel(keyed_entry&) noexcept;

 private:
  task& take_record();
  void forget_ended(keyed_entry&, timer_id) noexcept;

  keyed_core::group& group_;
  const time_point now_;
  time_point due_;
  record* record_ = nullptr;  // of the timer to be set
  record* ended_ = nullptr;   // the record of a timer that has ended: what it owns must be destroyed
  timer_id running_;          // a timer whose runs in progress must be interrupted
  bool wakes_ = false;        // the driver must be woken
};

}  // namespace rondo::detail
