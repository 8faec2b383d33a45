// keyed_timers, without the map of its keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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
  // Of the timer that was set last, until it has ended and its callable is destroyed; generation 0 means none.
  std::uint64_t generation = 0;
  std::uint32_t slot = 0;
  std::uint32_t replaced = 0;  // how many earlier timers have a task in progress

  /// Whether the key can be forgotten.
  bool unused() const noexcept { return generation == 0 && replaced == 0; }
};

class core;
struct record;
class RONDO_EXPORT RONDO_CHECKED_ABI keyed_call;

/// All timers of a keyed_timers. Each timer's tag is the number of its key's place in the table.
///
/// A call looks up the key, asks the scheduler and notes the result under one mutex, so the calls for a key are
/// serialised. Anything that may run user code happens after the mutex is unlocked: see keyed_call.
///
/// While it has keys, it keeps itself alive, so it may outlive the keyed_timers.
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

  /// Whether this is a copy in a child made by fork(), whose scheduler has no driver there. The mutex may never be free, so each
  /// call asks this first. (One that sets a timer is refused when it takes a record.)
  bool abandoned() const noexcept;

  // Precondition of these: the mutex is locked.

  /// Whether the entry has a pending timer.
  bool has_timer(const keyed_entry&) const;
  /// The exact deadline that the entry's timer waits for.
  std::optional<time_point> due(const keyed_entry&) const;
  /// Notes the timers that the key has now, after a keyed_call has cancelled its timer under the same lock.
  void note(awaited&, const keyed_entry&, std::uint32_t tag) const noexcept;
  /// The timer has ended, with no task in progress, and its callable is destroyed.
  void remove(keyed_entry&, timer_id) noexcept;
  /// Must be called after a timer was set.
  void keep_alive() {
    if (kept_ == nullptr) kept_ = shared_from_this();
  }
  std::shared_ptr<keyed_core> kept() const noexcept { return kept_; }
  /// Must be called when there are no keys any more. The caller destroys the result without the lock.
  std::shared_ptr<keyed_core> let_go() noexcept { return std::move(kept_); }

  mutable header_sync::mutex mutex_;

 private:
  friend class keyed_call;
  class owner;
  static constexpr std::uint32_t any_tag = 0;
  /// A timer that was replaced while its task was in progress, until that is over.
  struct replaced_timer {
    std::uint64_t number;  // of all that were replaced so
    timer_id id;
    std::uint32_t tag;
  };

  /// Cancels the key's timer, and notes its timers unless the key is forgotten.
  virtual cancel_result cancel_key(const void* key, awaited&) = 0;
  /// Calls remove() for the entry with that tag. No lock is held.
  virtual void left(std::uint32_t tag, timer_id) noexcept = 0;
  /// All tags are lower.
  virtual std::uint32_t end_of_tags() const noexcept = 0;
  /// The entry with that tag. Where no key is, it is unused.
  virtual const keyed_entry& entry(std::uint32_t tag) const noexcept = 0;

  timer_id id_of(const keyed_entry&) const noexcept;
  template <class Visit>
  void for_each_current(Visit&&) const;
  template <class Visit>
  void for_each_replaced(std::uint64_t until, std::uint32_t tag, Visit&&) const;
  void cancel_all(std::uint64_t replaced_until);

  const std::unique_ptr<owner> owner_;
  bool closed_ = false;
  std::shared_ptr<keyed_core> kept_;      // while there are keys
  std::vector<replaced_timer> replaced_;  // in the order of their numbers
  std::uint64_t numbers_ = 0;             // how many timers were ever in it
};

/// One call for a key. It is created before the mutex is locked and destroyed after the mutex is unlocked. Its
/// destructor wakes the driver, destroys the callable of a timer that has ended, and interrupts its runs in progress.
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
  void set(keyed_entry&, std::uint32_t tag, bool interrupts);
  /// Throws std::bad_alloc; strong guarantee.
  bool reschedule(const keyed_entry&);
  cancel_result cancel(keyed_entry&) noexcept;

 private:
  task& take_record();

  keyed_core& keys_;
  core& core_;
  const time_point now_;
  time_point due_;
  record* record_ = nullptr;  // of the timer to be set
  record* ended_ = nullptr;   // the record of a timer that has ended: what it owns must be destroyed
  timer_id running_;          // a timer whose runs in progress must be interrupted
  bool wakes_ = false;        // the driver must be woken
};

}  // namespace rondo::detail
