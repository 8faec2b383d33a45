// The wheel that threads share: sixteen wheels, each with a lock.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// Sixteen wheels share the ticks by their low bits, so that threads seldom need the same lock. All members may be
/// called from any thread, but calls about the same node must not overlap, except for take_out().
///
/// A stripe's lock guards its wheel and the nodes in it. node::wheel is the wheel of a stripe; it gets and loses that
/// value under the stripe's lock. node::due is written under the lock of the stripe that it leads to. It is read without
/// a lock, to find the stripe; then the stripe is locked, and node::wheel tells whether the node is there.
///
/// The earliest tick. `next_` has each stripe's next_key(), and `first_` says which stripe has the earliest one.
/// `first_mutex_` guards both; it is taken under a stripe's lock, only when that stripe's key has changed, and no lock
/// is taken under it. So a driver that asks for the first stripe sees all sixteen keys at one moment: a key that becomes
/// the earliest after that moment was compared with what the driver saw, or with something earlier that itself was, and
/// on_earliest() is called. No memory order beyond that of the locks is needed. (With sixteen atomics instead, a
/// producer could compare with a key that next_due() in another thread is just correcting to a later one, and a driver
/// that reads the producer's key before and the corrected key after would sleep too long.)
///
/// first() is read without a stripe's lock, so is_first() checks it again under that lock: otherwise a node could be
/// taken before an earlier one that was scheduled first.
// The padding keeps `mask_`, which every call reads, off the lines that are written.
class striped_wheel {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  /// `part` is wheel_core::part. Throws std::invalid_argument and std::bad_alloc.
  striped_wheel(std::size_t buckets, tick_number now, std::uint32_t part = sync::redistributed_at_a_time)
      : mask_(std::min(sync::stripes, checked_buckets(buckets)) - 1),
        low_bits_(std::popcount(mask_)),
        stripes_(make_stripes(checked_buckets(buckets) / (mask_ + 1), now, part,
                              std::make_index_sequence<sync::stripes>())) {
    next_.fill(never_tick);
  }
  striped_wheel(const striped_wheel&) = delete;
  striped_wheel& operator=(const striped_wheel&) = delete;

  std::size_t buckets() const noexcept { return stripes_[0].wheel.buckets() * (mask_ + 1); }

  /// Inserts `n` into the wheel, if may_insert() returns true; otherwise returns false. Calls on_earliest() if the
  /// earliest key of all stripes becomes earlier. Both are called under the stripe's lock, and thus before any other
  /// thread can take `n` out again. Strong guarantee. Preconditions: `n` is in no wheel; `due` is not never_tick.
  template <class MayInsert, class OnEarliest>
  bool schedule(node& n, tick_number due, MayInsert&& may_insert, OnEarliest&& on_earliest) {
    stripe& s = stripe_of(due);
    const std::lock_guard hold(s.mutex);
    if (!may_insert()) return false;
    if (s.wheel.insert(n, due, due >> low_bits_) && note_key(s)) on_earliest();
    set_place(n, due, &s.wheel);
    return true;
  }

  /// As schedule(), but for a node that may be in this wheel. move() is called under the locks of both stripes, when
  /// nothing can fail any more. If it returns false, `n` is not moved; on_earliest() may have been called nevertheless.
  template <class Move, class OnEarliest>
  bool reschedule(node& n, tick_number due, Move&& move, OnEarliest&& on_earliest) {
    stripe& s = stripe_of(due);
    stripe& from = stripe_of(__atomic_load_n(&n.due, __ATOMIC_RELAXED));
    const pair_lock hold(s, from);
    if (s.wheel.make_room(due) && note_key(s)) on_earliest();
    if (!move()) return false;
    if (__atomic_load_n(&n.wheel, __ATOMIC_RELAXED) == &from.wheel) from.wheel.erase(n);
    set_place(n, due, &s.wheel);
    s.wheel.add(n, due);
    return true;
  }

  /// Returns false if `n` is not in this wheel.
  bool cancel(node& n) noexcept {
    return take_out(n, [](bool is_here) { return is_here; });
  }

  /// Calls decide(is_here) under the lock of the stripe in which `n` is, or was last. If decide() returns true, `n` is
  /// not in this wheel afterwards. Returns what decide() returned. May be called while other calls about `n` are in
  /// progress: if is_here, none of them takes `n` out before take_out() returns.
  template <class Decide>
  bool take_out(node& n, Decide&& decide) noexcept {
    stripe& s = stripe_of(__atomic_load_n(&n.due, __ATOMIC_RELAXED));
    const std::lock_guard hold(s.mutex);
    const bool is_here = __atomic_load_n(&n.wheel, __ATOMIC_RELAXED) == &s.wheel;
    if (!decide(is_here)) return false;
    if (is_here) {
      s.wheel.erase(n);
      __atomic_store_n(&n.wheel, nullptr, __ATOMIC_RELAXED);
    }
    return true;
  }

  /// Takes the nodes due at or before `to` out of the wheel, earliest ticks first and in the order of scheduling within
  /// a tick, and calls on_due(node&, tick) for each, at most `limit` times. Returns the number of calls. Each node has
  /// left the wheel before its call. on_due is called under the stripe's lock. Other threads may take the lock between
  /// two parts of redistribution: see wheel_core::try_open(). Only one thread at a time may call this, and its `to`
  /// never decreases.
  template <class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const candidate first = this->first();
      if (first.due > to || first.due == never_tick) break;
      stripe& s = stripes_[first.stripe];
      const std::lock_guard hold(s.mutex);
      if (!is_first(first)) continue;
      const key_update update{*this, s};
      const wheel_core::open_tick tick = s.wheel.try_open();
      if (tick.nodes == nullptr) continue;
      while (taken != limit) {
        node* const n = s.wheel.take(tick);
        if (n == nullptr) break;
        __atomic_store_n(&n->wheel, nullptr, __ATOMIC_RELAXED);
        ++taken;
        on_due(*n, tick.due);
      }
      s.wheel.close(tick);
    }
    return taken;
  }

  /// The due tick of the earliest node, or none if the wheel is empty. Corrects early keys.
  std::optional<tick_number> next_due() {
    for (;;) {
      const candidate first = this->first();
      if (first.due == never_tick) return std::nullopt;
      stripe& s = stripes_[first.stripe];
      const std::lock_guard hold(s.mutex);
      if (!is_first(first)) continue;
      if (s.wheel.key_is_exact()) return first.due;
      s.wheel.correct_key();
      note_key(s);
    }
  }

  /// Sets where a node is, in the wheel `w` or in none. (Other threads may read it at the same time. Atomic members would
  /// make the bare wheel slower.)
  static void set_place(node& n, tick_number due, wheel_core* w) noexcept {
    __atomic_store_n(&n.due, due, __ATOMIC_RELAXED);
    __atomic_store_n(&n.wheel, w, __ATOMIC_RELAXED);
  }

  /// As wheel_core::shrink_to_fit(). Locks one stripe at a time.
  void shrink_to_fit() noexcept {
    for (stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.shrink_to_fit();
      note_key(s);
    }
  }

  /// As wheel_core::for_each(), under each stripe's lock.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.for_each(visit);
    }
  }

  /// As wheel_core::for_each_entry(), under each stripe's lock. A tick's bucket has the number `tick mod buckets`.
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    for (const stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.for_each_entry([&](std::optional<std::size_t> bucket, tick_number key, auto&& each) {
        if (bucket) bucket = *bucket * (mask_ + 1) + index_of(s);
        visit(bucket, key, each);
      });
    }
  }

  /// See detail/checks.hpp. May be called at any time. O(buckets + nodes).
  std::string fault() const {
    std::string wrong;
    for (const stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      if (wrong.empty()) wrong = s.wheel.fault();
      s.wheel.for_each([&](const node& n) {
        if (wrong.empty() && index_of(s) != (static_cast<std::size_t>(n.due) & mask_))
          wrong = "it holds a node due at tick " + std::to_string(n.due) + ", of another stripe";
      });
      const std::lock_guard hold_first(first_mutex_);
      if (wrong.empty() && next_[index_of(s)] != s.wheel.next_key())
        wrong = "a stripe's next tick is not its key";
      if (wrong.empty() && next_[index_of(s)] < next_[first_]) wrong = "a stripe comes before the first one";
    }
    return wrong;
  }

 private:
  struct alignas(512) stripe {
    stripe(std::size_t buckets, tick_number now, int low_bits, std::uint32_t part)
        : wheel(buckets, now, low_bits) {
      wheel.part = part;
    }
    mutable sync::stripe_mutex mutex;
    wheel_core wheel;
  };
  using stripes = std::array<stripe, sync::stripes>;

  struct candidate {
    std::size_t stripe;
    tick_number due;
  };

  /// Locks two stripes, or only one if both are the same.
  struct pair_lock {
    pair_lock(stripe& a, stripe& b) noexcept : first(std::min(&a, &b)), second(std::max(&a, &b)) {
      first->mutex.lock();
      if (first != second) second->mutex.lock();
    }
    ~pair_lock() {
      if (first != second) second->mutex.unlock();
      first->mutex.unlock();
    }
    pair_lock(const pair_lock&) = delete;
    pair_lock& operator=(const pair_lock&) = delete;

    stripe* first;  // in the order of their addresses, so that two threads never wait for each other
    stripe* second;
  };

  /// Notes the key at the end of a step, also if that throws.
  struct key_update {
    ~key_update() { wheel.note_key(s); }
    striped_wheel& wheel;
    stripe& s;
  };

  template <std::size_t... I>
  stripes make_stripes(std::size_t buckets, tick_number now, std::uint32_t part,
                       std::index_sequence<I...>) const {
    return {{(static_cast<void>(I), stripe(buckets, now, low_bits_, part))...}};
  }

  stripe& stripe_of(tick_number t) noexcept { return stripes_[static_cast<std::size_t>(t) & mask_]; }
  std::size_t index_of(const stripe& s) const noexcept {
    return static_cast<std::size_t>(&s - stripes_.data());
  }

  /// Notes the key of a stripe, which is locked. Returns whether it is the earliest and has become earlier.
  [[gnu::noinline]] bool note_key(const stripe& s) noexcept {
    const std::size_t i = index_of(s);
    const tick_number key = s.wheel.next_key();
    if (key == next_[i]) return false;  // only changes under this stripe's lock
    const std::lock_guard hold(first_mutex_);
    const bool is_earlier = key < next_[first_];
    next_[i] = key;
    if (is_earlier)
      first_ = i;
    else if (i == first_)
      first_ = static_cast<std::size_t>(std::min_element(next_.begin(), next_.end()) - next_.begin());
    return is_earlier;
  }
  candidate first() const noexcept {
    const std::lock_guard hold(first_mutex_);
    return {first_, next_[first_]};
  }
  bool is_first(const candidate& c) const noexcept {
    const std::lock_guard hold(first_mutex_);
    return first_ == c.stripe && next_[first_] == c.due;
  }

  std::size_t mask_;  // the stripe of tick t is t & mask_
  int low_bits_;      // the number of bits of mask_
  stripes stripes_;
  std::array<tick_number, sync::stripes> next_;
  std::size_t first_ = 0;
  mutable sync::queue_mutex first_mutex_;
};

}  // namespace rondo::detail
