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

namespace rondo::detail {

[[noreturn]] inline void refuse_closed_group() {
  throw stopped_error("rondo: a timer was scheduled through what is being destroyed, or closed");
}

/// The timers of one owner. It is a list of their records, linked through these, so that being a member takes no memory
/// besides. The core joins a record to its group before the timer is known to others, and takes it out when the callable
/// is destroyed or handed back: see core_group.hpp.
///
/// A group with members keeps itself alive, so it may outlive its owner. All members are legal from any thread. The lock
/// is held for a few instructions, and while it is held no other is taken.
template <class Sync>
class timer_group {
 public:
  using record_type = record<Sync>;
  class cursor;

  timer_group() = default;
  timer_group(const timer_group&) = delete;
  timer_group& operator=(const timer_group&) = delete;
  virtual ~timer_group() = default;

  /// From now on no timer joins.
  void close() noexcept {
    const std::lock_guard hold(mutex_);
    closed_ = true;
  }

  /// Precondition: `r` is locked, and serves a timer that nobody knows yet. Throws stopped_error if the group is closed.
  /// `tag`: what left() gets; null: it is not called.
  void join(record_type& r, void* tag) {
    const std::lock_guard hold(mutex_);
    if (closed_) refuse_closed_group();
    if (last_ == nullptr) kept_ = self();
    r.member = {this, last_, nullptr, tag};
    (last_ != nullptr ? last_->member.next : first_) = &r;
    last_ = &r;
  }

  /// The timer of `r`, which was never known to others, is not a member any more. Precondition: the caller's own reference
  /// keeps the group alive.
  void withdraw(record_type& r) noexcept {
    const auto last = remove(r);
    r.member = {};
  }

  /// The timer of `r` has ended, and what it owned is destroyed or handed back. Calls left(). Precondition: no lock is
  /// held, and the stack is marked as that of the timer's destruction, as user code may run.
  void leave(record_type& r, timer_id id) noexcept {
    if (r.member.tag != nullptr) left(r.member.tag, id);
    const auto last = remove(r);  // destroyed without the lock; may be what keeps the group
  }

 protected:
  /// What keeps the group alive.
  virtual std::shared_ptr<void> self() noexcept = 0;
  /// A timer with a tag has ended. Called without a lock.
  virtual void left(void* /*tag*/, timer_id) noexcept {}

 private:
  std::shared_ptr<void> remove(record_type& r) noexcept {
    const std::lock_guard hold(mutex_);
    for (cursor* c = cursors_; c != nullptr; c = c->after_) c->skip(r);
    (r.member.previous != nullptr ? r.member.previous->member.next : first_) = r.member.next;
    (r.member.next != nullptr ? r.member.next->member.previous : last_) = r.member.previous;
    return first_ == nullptr ? std::move(kept_) : nullptr;
  }

  mutable typename Sync::list_mutex mutex_;
  bool closed_ = false;
  record_type* first_ = nullptr;
  record_type* last_ = nullptr;
  cursor* cursors_ = nullptr;
  std::shared_ptr<void> kept_;  // while there are members
};

/// Goes over the timers that are members as it is made, each once, while others join, leave and visit: who leaves moves
/// the cursors that are about to come to it. So no lock is held between two steps. What joins meanwhile is not visited, or
/// tasks that schedule each other might keep a visit going for ever.
template <class Sync>
class timer_group<Sync>::cursor {
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

  /// None: it has come to the end.
  std::optional<place> next() noexcept {
    std::optional<place> here;
    next([&](const place& p, const record_type&) { here = p; });
    return here;
  }
  /// visit(place, record) of the next one, with the group locked; false: it has come to the end.
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
  void skip(const record_type& r) noexcept {
    if (next_ == &r && last_ == &r)
      next_ = last_ = nullptr;
    else if (next_ == &r)
      next_ = r.member.next;
    else if (last_ == &r)
      last_ = r.member.previous;
  }

  timer_group& group_;
  record_type* next_;  // those from here …
  record_type* last_;  // … to here are still to be visited; null: none
  cursor* after_;      // the next cursor of the group
};

}  // namespace rondo::detail
