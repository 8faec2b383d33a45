// Timers that end together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rondo/errors.hpp>
#include <rondo/timer_id.hpp>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// The timers of one owner. It is a list of their records, linked through their extra parts, so joining allocates nothing.
/// The core adds a record to its group before the timer is known to others, and removes it when the
/// callable is destroyed or handed back.
///
/// A group with members keeps itself alive, so it may outlive its owner. All member functions may be called from any
/// thread. The lock is held for a few instructions, and no other lock is taken while it is held.
class timer_group {
 public:
  class cursor;

  timer_group() = default;
  timer_group(const timer_group&) = delete;
  timer_group& operator=(const timer_group&) = delete;
  virtual ~timer_group() = default;

  /// From now on, no timer can join.
  void close() noexcept {
    const std::lock_guard hold(mutex_);
    closed_ = true;
  }

  /// Adds `r`. left() will get `tag`; if that is null, left() is not called. Throws stopped_error if the group is
  /// closed. Preconditions: `r` is locked, has an extra part, and serves a timer that nobody knows yet.
  void join(record& r, void* tag) {
    const std::lock_guard hold(mutex_);
    refuse_if_closed();
    if (last_ == nullptr) kept_ = self();
    r.member() = {this, last_, nullptr, tag};
    (last_ != nullptr ? last_->member().next : first_) = &r;
    last_ = &r;
  }

  /// Throws stopped_error if no timer can join.
  void check_open() {
    const std::lock_guard hold(mutex_);
    refuse_if_closed();
  }

  /// Removes the timer of `r`, which was never known to others. Precondition: the caller's own reference keeps the
  /// group alive.
  void withdraw(record& r) noexcept {
    const auto last = remove(r);
    r.member() = {};
  }

  /// Removes the timer of `r`, which has ended. What it owned has been destroyed or handed back. Calls left().
  /// Preconditions: no lock is held, and a stack marker marks the timer's destruction, because user code may run.
  void leave(record& r, timer_id id) noexcept {
    if (r.member().tag != nullptr) left(r.member().tag, id);
    const auto last = remove(r);  // destroyed without the lock; may be the last reference to the group
  }

 protected:
  /// A reference that keeps the group alive.
  virtual std::shared_ptr<void> self() noexcept = 0;
  /// Called, without a lock, when a timer with a tag has ended.
  virtual void left(void* /*tag*/, timer_id) noexcept {}

 private:
  void refuse_if_closed() const {
    if (closed_)
      throw stopped_error(
          "rondo: a timer was scheduled through an object that is being destroyed or is closed");
  }
  std::shared_ptr<void> remove(record&) noexcept;

  sync::list_mutex mutex_;
  bool closed_ = false;
  record* first_ = nullptr;
  record* last_ = nullptr;
  cursor* cursors_ = nullptr;
  std::shared_ptr<void> kept_;  // while there are members
};

/// Visits the timers that are members when it is constructed, each once, while others join, leave and visit. A timer
/// that leaves moves the cursors that would visit it next. So no lock is held between two steps. Timers that join in
/// the meantime are not visited; otherwise tasks that schedule each other might keep a visit going forever.
class timer_group::cursor {
 public:
  struct place {
    std::uint32_t slot;
    std::uint64_t generation;
  };

  explicit cursor(timer_group& group) noexcept : group_(group) {
    const std::lock_guard hold(group_.mutex_);
    next_ = group_.first_;
    last_ = group_.last_;
    after_ = std::exchange(group_.cursors_, this);
  }
  ~cursor() {
    const std::lock_guard hold(group_.mutex_);
    cursor** link = &group_.cursors_;
    while (*link != this) link = &(*link)->after_;
    *link = after_;
  }
  cursor(const cursor&) = delete;
  cursor& operator=(const cursor&) = delete;

  /// Returns the next member, or none at the end.
  std::optional<place> next() noexcept {
    std::optional<place> here;
    next([&](const place& p, const record&) { here = p; });
    return here;
  }
  /// Calls visit(place, record) for the next member, with the group locked. Returns false at the end.
  template <class Visit>
  bool next(Visit&& visit) noexcept {
    const std::lock_guard hold(group_.mutex_);
    if (next_ == nullptr) return false;
    // A member's generation does not change: its record is freed only after it has left.
    visit(place{next_->slot, next_->generation}, *next_);
    skip(*next_);
    return true;
  }

 private:
  friend class timer_group;

  /// Precondition: the group is locked, and `r` is still in its list.
  void skip(const record& r) noexcept {
    if (next_ == &r && last_ == &r)
      next_ = last_ = nullptr;
    else if (next_ == &r)
      next_ = r.member().next;
    else if (last_ == &r)
      last_ = r.member().previous;
  }

  timer_group& group_;
  record* next_;   // those from here …
  record* last_;   // … to here are still to be visited; null if there are none
  cursor* after_;  // the next cursor of the group
};

inline std::shared_ptr<void> timer_group::remove(record& r) noexcept {
  const std::lock_guard hold(mutex_);
  for (cursor* c = cursors_; c != nullptr; c = c->after_) c->skip(r);
  const membership& place = r.member();
  (place.previous != nullptr ? place.previous->member().next : first_) = place.next;
  (place.next != nullptr ? place.next->member().previous : last_) = place.previous;
  return first_ == nullptr ? std::move(kept_) : nullptr;
}

}  // namespace rondo::detail
