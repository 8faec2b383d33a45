// Whoever owns timers, and timers that end together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <rondo/detail/block_table.hpp>
#include <rondo/errors.hpp>
#include <rondo/timer_id.hpp>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// What is told when its timers end.
class timer_owner {
 public:
  timer_owner() = default;
  timer_owner(const timer_owner&) = delete;
  timer_owner& operator=(const timer_owner&) = delete;
  virtual ~timer_owner() = default;

  /// Called when the timer of `r` has ended, and what it owned has been destroyed or handed back. Preconditions: no lock is
  /// held, and a stack marker marks the timer's destruction, because user code may run.
  virtual void leave(record& r, timer_id) noexcept = 0;

  [[noreturn]] static void refuse_closed() {
    throw stopped_error(
        "rondo: a timer was scheduled through an object that is being destroyed or is closed");
  }
};

/// The timers of a scope: a table of their records' slots. A timer's tag is its number in the table. It is in the table from
/// before others know of it until its callable is destroyed or handed back.
///
/// A group with members keeps itself alive, so it may outlive the scope. All member functions may be called from any
/// thread. The lock is held for a few instructions, or while a timer is put into the wheel, and no other lock is taken while it
/// is held.
class timer_group : public timer_owner {
 public:
  struct place {
    std::uint64_t generation = 0;  // 0 if it is free
    std::uint64_t joined = 0;      // how many had joined before
    std::uint32_t slot = 0;        // or the number of the next free place
  };

  /// From now on, no timer can join.
  void close() noexcept {
    const std::lock_guard hold(mutex_);
    closed_ = true;
  }

  /// Takes a place, for a call of join() or give_back(). Throws stopped_error if no timer can join, and std::bad_alloc.
  std::uint32_t take_place() {
    const std::lock_guard hold(mutex_);
    if (closed_) refuse_closed();
    if (free_ == 0) free_place(places_.add());
    const std::uint32_t number = free_;
    free_ = places_.at(number).slot;
    return number;
  }
  void give_back(std::uint32_t number) noexcept {
    const std::lock_guard hold(mutex_);
    free_place(number);
  }
  /// Calls publish(), with the group locked, and adds `r`. Throws what that throws, and stopped_error if the group is closed; then
  /// `r` is not added. Precondition: the shard of `r` is locked.
  template <class Publish>
  void join(record& r, std::uint32_t number, Publish&& publish) {
    const std::lock_guard hold(mutex_);
    if (closed_) refuse_closed();
    r.belong_to(*this, number);
    publish();
    if (members_++ == 0) kept_ = self();
    places_.at(number) = {r.generation, joined_++, r.slot};
  }
  /// Removes the timer of `r`. Returns what the caller must destroy when it holds no lock: perhaps the last reference to the
  /// group.
  [[nodiscard]] std::shared_ptr<void> remove(record& r) noexcept {
    const std::lock_guard hold(mutex_);
    free_place(r.tag);
    return --members_ == 0 ? std::move(kept_) : nullptr;
  }

  /// Calls visit(place), without the lock, for each timer that is a member now, unless it leaves before its turn comes. Timers
  /// that join in the meantime are not visited; otherwise tasks that schedule each other might keep a visit going forever.
  template <class Visit>
  void for_each(Visit&& visit) const {
    std::unique_lock hold(mutex_);
    const std::uint64_t before = joined_;
    for (std::uint32_t number = 1, end = places_.end(); number < end; ++number) {
      const place p = places_.at(number);
      const bool is_visited = p.generation != 0 && p.joined < before;
      if (!is_visited && number % at_a_time != 0) continue;
      hold.unlock();
      if (is_visited) visit(p);
      hold.lock();
    }
  }

 protected:
  /// A reference that keeps the group alive.
  virtual std::shared_ptr<void> self() noexcept = 0;

 private:
  static constexpr std::uint32_t at_a_time = 64;  // because other calls wait for the lock

  void leave(record& r, timer_id) noexcept final { const auto last = remove(r); }
  void free_place(std::uint32_t number) noexcept {
    places_.at(number) = {0, 0, std::exchange(free_, number)};
  }

  mutable sync::list_mutex mutex_;
  bool closed_ = false;
  std::uint32_t free_ = 0;  // the number of a free place; 0 if there is none
  std::size_t members_ = 0;
  std::uint64_t joined_ = 0;  // how many have ever joined
  block_table<place> places_;
  std::shared_ptr<void> kept_;  // while there are members
};

}  // namespace rondo::detail
