// The wheel that threads share: sixteen wheels, each with a lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// Where a shared_node is.
enum class place : std::uint8_t {
  out,      // in no wheel
  parked,   // in a wheel, but the timer was cancelled; the node belongs to whoever has cancelled it
  waiting,  // in a wheel; anybody may cancel it
  guarded,  // in a wheel; only the owner may cancel it
  moving,   // in a wheel whose lock is held, and about to be in another place
};

/// A value of the word of a shared_node.
struct node_word {
  std::uint64_t bits;

  static node_word of(std::uint64_t generation, place where) noexcept {
    return {generation * places + static_cast<std::uint64_t>(where)};
  }
  place where() const noexcept { return static_cast<place>(bits % places); }
  /// The timer that the node serves, or will serve. 0 in memory that reads as zero, which no timer has.
  std::uint64_t generation() const noexcept { return bits / places; }
  node_word with(place where) const noexcept { return of(generation(), where); }
  bool is_scheduled() const noexcept { return where() >= place::waiting; }

 private:
  static constexpr std::uint64_t places = 8;
};

/// A node of a striped_wheel. A node stays in its place when its timer is cancelled, and when the next timer that it serves
/// is due no earlier than that place. So a timeout that is cancelled and set again touches nothing that threads share.
///
/// Its word says which timer it serves and where it is. It is the only part of the wheel that is changed without a lock:
///
///     out ───────────────> waiting, guarded    schedule(), reschedule(): under the stripe's lock
///     parked ────────────> waiting, guarded    schedule_in_place()
///     waiting ───────────> parked              cancel_in_place(), with the next generation
///     waiting, guarded ──> parked              park()
///     waiting, guarded <─> moving              under the locks of both stripes
///     all but moving ────> out                 under the stripe's lock: taken because it is due, cancelled, or dropped
///
/// Each change is a compare-and-swap that fails if another thread was faster. All but those from `out` and `moving` are
/// competed for.
///
/// node::due is the tick of its place. It changes only under the locks, while the node is out or moving. The timer is due
/// at due_tick(), which changes only while the node is out, parked or moving.
class shared_node : public node {
 public:
  node_word word() const noexcept { return {word_.load(std::memory_order_seq_cst)}; }
  /// Returns false if another thread was faster.
  bool change(node_word from, node_word to) noexcept {
    return word_.compare_exchange_strong(from.bits, to.bits, std::memory_order_seq_cst);
  }
  /// Cancels the timer of that generation, if it is waiting; the node then belongs to the caller. Otherwise returns false.
  /// May be called while other calls about the node are in progress.
  bool cancel_in_place(std::uint64_t generation) noexcept {
    const node_word waiting = node_word::of(generation, place::waiting);
    return change(waiting, node_word::of(generation + 1, place::parked));
  }
  /// The timer that it serves, which was `found`, is cancelled, but remains the same. Returns false if the node is not
  /// waiting or guarded, or if another thread was faster.
  bool park(node_word found) noexcept {
    const bool is_in_place = found.where() == place::waiting || found.where() == place::guarded;
    return is_in_place && change(found, found.with(place::parked));
  }
  /// From now on it serves the next timer. Precondition: it is out or parked, and belongs to the caller.
  void advance_generation() noexcept {
    const node_word found = word();  // parked nodes may be dropped at any time
    const node_word next = node_word::of(found.generation() + 1, found.where());
    if (found.where() == place::out || !change(found, next)) set(next.with(place::out));
  }
  /// For a node that nobody else can change.
  void set(node_word to) noexcept { word_.store(to.bits, std::memory_order_release); }
  std::uint64_t generation() const noexcept { return word().generation(); }

  // Others may read these at the same time. A thread that has found a timer in the word then finds what that timer is due at,
  // or a later timer that the node serves; in the second case it can no longer change the word from what it has found.
  // (Atomic members of `node` would make the bare wheel slower.)

  tick_number due_tick() const noexcept {
    return __atomic_load_n(&due, __ATOMIC_RELAXED) + ticks_later_.load(std::memory_order_relaxed);
  }
  bool is_due_after_its_place() const noexcept { return ticks_later_.load(std::memory_order_relaxed) != 0; }
  /// Sets its place and its due tick.
  void set_due(tick_number tick) noexcept {
    ticks_later_.store(0, std::memory_order_relaxed);
    __atomic_store_n(&due, tick, __ATOMIC_RELAXED);
  }
  /// Sets its due tick, but leaves its place. Returns false if that cannot be done.
  bool set_due_in_place(tick_number tick) noexcept {
    if (tick < due || tick - due > most_ticks_later) return false;
    ticks_later_.store(static_cast<std::uint32_t>(tick - due), std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr tick_number most_ticks_later = std::numeric_limits<std::uint32_t>::max();

  // First, because it fits into the padding of `node`.
  std::atomic<std::uint32_t> ticks_later_{0};

 protected:
  sync::atomic<std::uint64_t> word_{node_word::of(1, place::out).bits};
};

/// Sixteen wheels share the ticks by their low bits, so that threads seldom need the same lock. All members may be
/// called from any thread, but calls about the same node must not overlap, except for those that say so.
///
/// A stripe's lock guards its wheel and the slots of the nodes in it. node::wheel is the wheel of the stripe that a node
/// is in, or was in last; it is written under that stripe's lock, and read without one to find the stripe, which is then
/// locked.
///
/// Nodes that are due after their place. When the tick of the place comes, such a node is moved to its due tick, perhaps
/// to another stripe. This happens before the driver sleeps until the tick of the place: next_due() looks at the node
/// that it finds. So the driver never wakes for a node that is not due, unless the node was cancelled or set again while
/// it slept. It need not be woken when a node is scheduled in place, because its place was not after its tick.
///
/// Nodes of a tick are taken in any order.
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

  /// Schedules `n` where it is, without a lock. Returns false, and may have changed its due tick, if it is not parked
  /// at or before `due`. Precondition: `n` belongs to the caller.
  bool schedule_in_place(shared_node& n, tick_number due, place how) noexcept {
    const node_word parked = n.word();
    return parked.where() == place::parked && n.set_due_in_place(due) && n.change(parked, parked.with(how));
  }

  /// Inserts `n` into the wheel, if may_insert() returns true; otherwise returns false. `how` is `waiting` or `guarded`.
  /// Calls on_earliest() if the earliest key of all stripes becomes earlier. Both are called under the stripe's lock, and
  /// thus before any other thread can take `n` out again. Strong guarantee. Preconditions: `n` belongs to the caller, and
  /// is `out` or `parked`; `due` is not never_tick.
  template <class MayInsert, class OnEarliest>
  bool schedule(shared_node& n, tick_number due, place how, MayInsert&& may_insert,
                OnEarliest&& on_earliest) {
    if (n.word().where() != place::out) [[unlikely]]
      cancel(n);
    stripe& s = stripe_of(due);
    const std::lock_guard hold(s.mutex);
    if (!may_insert()) return false;
    if (s.wheel.insert<true>(n, due, due >> low_bits_) && note_key(s)) on_earliest();
    settle(n, s, due, how);
    return true;
  }

  /// As schedule(), but for a node that may be scheduled in this wheel. If may_move() returns false, or if `n` is cancelled
  /// in place in the meantime, does nothing and returns false; on_earliest() may have been called nevertheless. Otherwise
  /// calls moved(). All are called under the locks of both stripes, moved() when `n` is in no wheel.
  template <class MayMove, class Moved, class OnEarliest>
  bool reschedule(shared_node& n, tick_number due, place how, MayMove&& may_move, Moved&& moved,
                  OnEarliest&& on_earliest) {
    stripe& s = stripe_of(due);
    const pair_lock hold(*this, s, n);
    if (s.wheel.make_room(due) && note_key(s)) on_earliest();
    if (!leave(n, [&](node_word) { return may_move(); })) return false;
    moved();
    s.wheel.add(n, due);
    settle(n, s, due, how);
    return true;
  }

  /// Takes `n` out of its place, if it is in this wheel. Returns whether it was scheduled.
  bool cancel(shared_node& n) noexcept {
    bool was_scheduled = false;
    take_out(n, [&](node_word w) {
      was_scheduled = w.is_scheduled();
      return true;
    });
    return was_scheduled;
  }

  /// Calls decide(node_word) under the lock of the stripe in which `n` is, or was last. If it returns true, `n` is not in
  /// this wheel afterwards; unless it was cancelled in place in the meantime, when nothing is done. Returns whether that
  /// succeeded. May be called while other calls about `n` are in progress.
  template <class Decide>
  bool take_out(shared_node& n, Decide&& decide) noexcept {
    const pair_lock hold(*this, n);
    return leave(n, decide);
  }

  /// Takes the nodes due at or before `to` out of the wheel, earliest ticks first, and calls on_due(shared_node&, tick)
  /// for each, at most `limit` times. Returns the number of calls. Each node has left the wheel before its call. on_due
  /// is called under the stripe's lock. Other threads may take the lock between two parts of redistribution: see
  /// wheel_core::try_open(). Only one thread at a time may call this, and its `to` never decreases.
  template <class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const candidate first = this->first();
      if (first.due > to || first.due == never_tick) break;
      stripe& s = stripes_[first.stripe];
      shared_node* due_later = nullptr;
      {
        const std::lock_guard hold(s.mutex);
        if (!is_first(first)) continue;
        const key_update update{*this, s};
        const wheel_core::open_tick tick = s.wheel.try_open();
        if (tick.nodes == nullptr) continue;
        s.wheel.take_while(tick, [&](node& first_node) {
          if (taken == limit) return false;
          auto& n = static_cast<shared_node&>(first_node);
          const found_node is = take_if_due(n);
          if (is == found_node::due) {
            ++taken;
            on_due(n, tick.due);
          }
          if (is == found_node::due_later) due_later = &n;
          return is != found_node::due_later;
        });
        s.wheel.close(tick);
      }
      if (due_later != nullptr) move_to_due_tick(*due_later);
    }
    return taken;
  }

  /// The due tick of the earliest node, or none if the wheel is empty. Corrects early keys. An earlier tick if there is no
  /// memory to move a node to its due tick.
  std::optional<tick_number> next_due() noexcept {
    for (;;) {
      const candidate first = this->first();
      if (first.due == never_tick) return std::nullopt;
      stripe& s = stripes_[first.stripe];
      shared_node* earliest = nullptr;
      {
        const std::lock_guard hold(s.mutex);
        if (s.wheel.next_key() == first.due) earliest = static_cast<shared_node*>(s.wheel.find_earliest());
        if (earliest == nullptr) {
          note_key(s);
          continue;
        }
        if (!earliest->is_due_after_its_place()) {
          if (is_first(first)) return first.due;
          continue;
        }
      }
      try {
        move_to_due_tick(*earliest);
      } catch (const std::bad_alloc&) {
        return first.due;
      }
    }
  }

  /// As wheel_core::shrink_to_fit(). Locks one stripe at a time.
  void shrink_to_fit() noexcept {
    for (stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.drop_cancelled();
      s.wheel.shrink_to_fit();
      note_key(s);
    }
  }

  /// Drops all parked nodes, and calls visit(shared_node&) for each scheduled node, under its stripe's lock. So a node that
  /// is parked before the call is either visited, or schedule_in_place() returns false for it afterwards. Finds all nodes
  /// that are scheduled all the time, and on which nobody calls reschedule().
  template <class Visit>
  void for_each(Visit&& visit) {
    const std::lock_guard nothing_moves(moving_mutex_);
    for (stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.drop_cancelled();
      s.wheel.for_each_linked([&](node& n) { visit_scheduled(n, visit); });
    }
  }

  /// As wheel_core::for_each_entry(), under each stripe's lock. A tick's bucket has the number `tick mod buckets`. Changes
  /// nothing, and misses only what for_each() may miss.
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    const std::lock_guard nothing_moves(moving_mutex_);
    for (const stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      s.wheel.for_each_entry([&](std::optional<std::size_t> bucket, tick_number key, auto&& each) {
        if (bucket) bucket = *bucket * (mask_ + 1) + index_of(s);
        visit(bucket, key, [&](auto&& f) { each([&](node& n) { visit_scheduled(n, f); }); });
      });
    }
  }

  /// See detail/checks.hpp. May be called at any time. O(buckets + nodes).
  std::string fault() const {
    std::string wrong;
    for (const stripe& s : std::span(stripes_.data(), mask_ + 1)) {
      const std::lock_guard hold(s.mutex);
      if (wrong.empty()) wrong = s.wheel.fault();
      s.wheel.for_each_linked([&](node& n) {
        if (wrong.empty() && static_cast<shared_node&>(n).word().where() == place::out)
          wrong = "it holds a node that says it is in no wheel";
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
        : wheel(buckets, now, low_bits, &drop_if_parked) {
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

  /// Locks the stripe in which a node is, or was last, if there is one, and perhaps another stripe.
  class pair_lock {
   public:
    pair_lock(striped_wheel& wheel, stripe& other, const node& n) noexcept { lock(wheel, &other, n); }
    pair_lock(striped_wheel& wheel, const node& n) noexcept { lock(wheel, nullptr, n); }
    ~pair_lock() { unlock(); }
    bool has(const stripe& s) const noexcept { return &s == first_ || &s == second_; }
    pair_lock(const pair_lock&) = delete;
    pair_lock& operator=(const pair_lock&) = delete;

   private:
    void lock(striped_wheel& wheel, stripe* other, const node& n) noexcept {
      for (;;) {
        wheel_core* const home = __atomic_load_n(&n.wheel, __ATOMIC_RELAXED);
        stripe* const from = home != nullptr ? &wheel.stripe_with(*home) : other;
        first_ = other == nullptr ? from : std::min(from, other);
        second_ = other == nullptr ? from : std::max(from, other);
        if (first_ == nullptr) return;
        first_->mutex.lock();
        if (first_ != second_) second_->mutex.lock();
        if (__atomic_load_n(&n.wheel, __ATOMIC_RELAXED) == home) return;
        unlock();
      }
    }
    void unlock() noexcept {
      if (first_ == nullptr) return;
      if (first_ != second_) second_->mutex.unlock();
      first_->mutex.unlock();
    }

    stripe* first_ =
        nullptr;  // in the order of their addresses, so that two threads never wait for each other
    stripe* second_ = nullptr;
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

  stripe& stripe_with(const wheel_core& w) noexcept {
    const auto offset = reinterpret_cast<const char*>(&w) - reinterpret_cast<const char*>(stripes_.data());
    return stripes_[static_cast<std::size_t>(offset) / sizeof(stripe)];
  }

  static bool drop_if_parked(node& n) noexcept {
    auto& parked = static_cast<shared_node&>(n);
    const node_word found = parked.word();
    return found.where() == place::parked && parked.change(found, found.with(place::out));
  }
  template <class Visit>
  static void visit_scheduled(node& n, Visit&& visit) {
    if (static_cast<shared_node&>(n).word().is_scheduled()) visit(static_cast<shared_node&>(n));
  }

  /// The node, which was inserted into a stripe that is locked, is in its place.
  static void settle(shared_node& n, stripe& s, tick_number due, place how) noexcept {
    __atomic_store_n(&n.wheel, &s.wheel, __ATOMIC_RELAXED);
    n.set_due(due);
    n.set(n.word().with(how));
  }

  /// Takes `n`, whose stripe is locked, out of its place, if it is in one. Returns false and does nothing if
  /// may_leave(node_word) returns false, or if another thread changes the word in the meantime.
  template <class MayLeave>
  static bool leave(shared_node& n, MayLeave&& may_leave) noexcept {
    const node_word found = n.word();
    if (!may_leave(found)) return false;
    if (found.where() == place::out) return true;
    if (!n.change(found, found.with(place::out))) return false;
    n.wheel->unlink(n);
    return true;
  }

  enum class found_node { due, due_later, cancelled };

  /// Says what a node is whose place has come. Unless it is due later, it is out afterwards.
  static found_node take_if_due(shared_node& n) noexcept {
    for (;;) {
      const node_word found = n.word();
      if (found.is_scheduled() && n.is_due_after_its_place()) return found_node::due_later;
      if (n.change(found, found.with(place::out)))
        return found.is_scheduled() ? found_node::due : found_node::cancelled;
    }
  }

  /// Moves a node that was found in its place before its due tick. Does nothing if it was cancelled, moved or set again in
  /// the meantime. Strong guarantee.
  void move_to_due_tick(shared_node& n) {
    const std::lock_guard no_search(moving_mutex_);
    stripe& to = stripe_of(n.due_tick());
    const pair_lock hold(*this, to, n);
    const node_word found = n.word();
    const tick_number due = n.due_tick();
    if (!found.is_scheduled() || !n.is_due_after_its_place() || &stripe_of(due) != &to) return;
    // If it was out when the stripes were locked, it may have been scheduled in another one since.
    stripe& from = stripe_with(*__atomic_load_n(&n.wheel, __ATOMIC_RELAXED));
    if (!hold.has(from)) return;
    const key_update update_to{*this, to};
    to.wheel.make_room(due);
    if (!n.change(found, found.with(place::moving))) return;
    from.wheel.unlink(n);
    to.wheel.add(n, due);
    settle(n, to, due, found.where());
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
  mutable sync::moving_mutex moving_mutex_;  // no node moves to its due tick while all nodes are visited
};

}  // namespace rondo::detail
