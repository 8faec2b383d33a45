// The class of the wheel. wheel_core.hpp explains how it works.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include <rondo/detail/chain.hpp>
#include <rondo/detail/delay_queue.hpp>
#include <rondo/detail/node.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_stripe.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// `buckets` rounded up to a power of two. Throws std::invalid_argument unless 1 <= buckets <= max_buckets.
RONDO_EXPORT std::size_t checked_buckets(std::size_t buckets);

/// A passive wheel: it has no clock, no thread and no callables.
///
/// Sync defines the types of the locks, the number of stripes, and the size of a part of redistribution. With real
/// locks, all members may be called from any thread, but calls about the same node must not overlap, except for
/// take_out().
template <class Sync>
class wheel_core : public wheel_base {
 public:
  explicit wheel_core(std::size_t buckets, tick_number now = 0)
      : mask_(checked_buckets(buckets) - 1),
        stripe_mask_(std::min(Sync::stripes, mask_ + 1) - 1),
        block_shift_(std::max(static_cast<int>(std::bit_width(mask_)) - window_block_bits, 0)),
        buckets_(mask_ + 1),
        queue_(mask_ + stripe_mask_ + 2) {
    for (std::size_t i = 0; i <= stripe_mask_; ++i) {
      stripes_[i].future.set_block_shift(block_shift_);
      move_window(stripes_[i], begin_of_block(now));
    }
  }
  wheel_core(const wheel_core&) = delete;
  wheel_core& operator=(const wheel_core&) = delete;

  std::size_t buckets() const noexcept { return mask_ + 1; }

  /// Inserts `n` into the wheel. `hooks` are the insert hooks. They are called under the stripe's lock, and thus before
  /// any other thread can take `n` out again. hooks.may_insert() decides whether `n` is inserted; if not, schedule()
  /// returns false. hooks.top_moved_earlier() reports that the top of the delay queue has become earlier. Strong
  /// guarantee. Precondition: `n` is in no wheel.
  template <class Hooks>
  bool schedule(node& n, tick_number due, Hooks&& hooks) {
    stripe& s = stripe_at(due);
    const std::lock_guard hold(s.mutex);
    if (!hooks.may_insert()) return false;
    write(n.due, due);
    if (!add_at_once(n, due, s) && add_slowly(n, due, s)) hooks.top_moved_earlier();
    enter(n);
    return true;
  }

  /// As schedule(), but for a node that may be in this wheel or in another one. hooks.may_move(n) decides, under the
  /// locks of both stripes, whether `n` is moved. Once nothing can fail any more, hooks.before_move(n) is called, for
  /// example to take `n` out of another wheel.
  template <class Hooks>
  [[gnu::noinline]] bool reschedule(node& n, tick_number due, Hooks&& hooks) {
    stripe& s = stripe_at(due);
    stripe& from = stripe_at(n.due.peek());
    const stripe_pair_lock<Sync> hold(s, from);
    if (!hooks.may_move(n)) return false;
    const bool is_earliest = make_room(due, s);
    hooks.before_move(n);
    if (n.wheel == this) erase(n, from);
    write(n.due, due);
    enter(n);
    add(n, due, s);
    if (is_earliest) hooks.top_moved_earlier();
    return true;
  }

  /// Returns false if `n` is not in this wheel.
  bool cancel(node& n) noexcept {
    return take_out(n, [](bool is_here) { return is_here; });
  }

  /// Calls decide(is_here) under the lock of the stripe in which `n` is, or was last. If decide() returns true, `n` is
  /// not in this wheel afterwards. Returns what decide() returned. May be called while other calls about `n` are in
  /// progress: if is_here, none of them takes `n` out before take_out() returns.
  ///
  /// Memory order: a hint selects the stripe. `wheel` is released after `due` is written. So a thread that acquires
  /// `wheel` and finds `n` here reads either a tick of another stripe, or the tick with which `n` was inserted. In the
  /// latter case, if the tick belongs to this stripe, the lock guards both.
  template <class Decide>
  bool take_out(node& n, Decide&& decide) noexcept {
    stripe& s = stripe_at(n.due.peek());
    const std::lock_guard hold(s.mutex);
    const bool is_here = n.wheel.acquire() == this && (!locked || &stripe_at(n.due.peek()) == &s);
    if (!decide(is_here)) return false;
    if (is_here) {
      erase(n, s);
      write<wheel_base*>(n.wheel, nullptr);
    }
    return true;
  }

  /// Takes the nodes due at or before `to` out of the wheel, earliest ticks first and in the order of scheduling within
  /// a tick, and calls on_due(node&, tick) for each, at most `limit` times. Returns the number of calls. Each node has
  /// left the wheel before its call. on_due is called under the stripe's lock; without locks, it may do anything to the
  /// wheel. For each tick, or for 4,096 nodes of one, at most two parts of far nodes are redistributed. Overdue nodes
  /// are redistributed until those of the earliest tick have a list; with locks, other threads may take the lock
  /// between two parts.
  template <class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const std::optional<top_entry> first = top();
      if (!first || first->due > to) break;
      const tick_number tick = first->due;
      stripe& s = stripe_of(first->entry);
      const std::lock_guard hold(s.mutex);
      if (locked && !is_top(*first)) continue;
      if (!is_exact(*first, s)) {
        rekey(*first, s);
        continue;
      }
      chain* const nodes = first->entry <= mask_ ? &buckets_[first->entry].nodes : gather_far(first->due, s);
      if (nodes == nullptr) continue;
      nodes->prefetch_first(s.pool);
      node* n = nodes->front(s.pool);
      do {
        nodes->pop_front(s.pool);
        write<wheel_base*>(n->wheel, nullptr);
        if (tick == s.key) s.key_is_exact = false;
        ++taken;
        on_due(*n, tick);
        n = nodes->front(s.pool);
        // Without locks, on_due may have scheduled an earlier node. With locks, other threads may; that node comes
        // next.
      } while (taken != limit && n != nullptr && (locked || is_top(*first)));
      after_taking(*first, s, n == nullptr);
    }
    return taken;
  }

  /// The due tick of the earliest node, or none if the wheel is empty. Corrects early keys.
  std::optional<tick_number> next_due() {
    for (;;) {
      const std::optional<top_entry> first = top();
      if (!first) return std::nullopt;
      stripe& s = stripe_of(first->entry);
      const std::lock_guard hold(s.mutex);
      if (locked && !is_top(*first)) continue;
      if (is_exact(*first, s)) return first->due;
      rekey(*first, s);
    }
  }

  /// Gives back the chunks, segments, tables and far lists that hold no node. Nodes do not move. O(buckets + segments),
  /// plus O(1) for each chunk of cancelled nodes. With locks, stripes are locked one at a time. `in_callback` means
  /// that the caller is inside on_due of take_due(), which is legal only without locks; the far lists that take_due()
  /// reads then stay.
  void shrink_to_fit(bool in_callback = false) noexcept;

  /// Calls visit(bucket, key, each) for each entry of the delay queue, under its stripe's lock. `bucket` is the number
  /// of a bucket, or none for the entry of far stores. `key` is the entry's key, which may be early. each(f) calls
  /// f(node&) for each node that the entry represents.
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    for (std::size_t i = 0; i <= stripe_mask_; ++i) {
      const stripe& s = stripes_[i];
      const std::lock_guard hold(s.mutex);
      for (std::size_t b = i; b <= mask_; b += stripe_mask_ + 1)
        if (buckets_[b].nodes.has_chunks())
          visit(std::optional(b), key_of(b), [&](auto&& f) { buckets_[b].nodes.for_each(s.pool, f); });
      if (s.queued)
        visit(std::optional<std::size_t>(), key_of(mask_ + 1 + i), [&](auto&& f) {
          s.past.for_each(f);
          s.future.for_each(f);
        });
    }
  }

  /// See detail/checks.hpp. May be called at any time, and from any thread if there are locks. O(buckets + nodes).
  std::string fault() const;

  /// Calls visit(node&) for each node, under its stripe's lock. Visits the nodes of one tick in the order of
  /// scheduling, but ticks in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i <= stripe_mask_; ++i) {
      const std::lock_guard hold(stripes_[i].mutex);
      for_each_in(i, visit);
    }
  }

 private:
  using bucket = wheel_bucket<Sync>;
  using stripe = wheel_stripe<Sync>;

  static constexpr bool locked = is_locked<Sync>;
  // The window has eight blocks, so that it moves by an eighth of its length: 64 ticks of 512.
  static constexpr int window_block_bits = 3;
  struct top_entry {
    std::size_t entry;
    tick_number due;
  };

  std::size_t stripe_index(std::size_t tick_or_entry) const noexcept {
    if constexpr (Sync::stripes == 1)
      return 0;
    else
      return tick_or_entry & stripe_mask_;
  }
  stripe& stripe_at(tick_number t) noexcept { return stripes_[stripe_index(static_cast<std::size_t>(t))]; }
  const stripe& stripe_at(tick_number t) const noexcept {
    return stripes_[stripe_index(static_cast<std::size_t>(t))];
  }
  /// The stripe of an entry. The number of buckets is a multiple of the number of stripes, so the low bits are the
  /// stripe's index for both kinds of entries.
  stripe& stripe_of(std::size_t entry) noexcept { return stripes_[stripe_index(entry)]; }
  std::size_t far_entry(const stripe& s) const noexcept {
    return mask_ + 1 + static_cast<std::size_t>(&s - stripes_.data());
  }
  bucket& bucket_at(tick_number t) const noexcept { return buckets_[bucket_of(t, mask_)]; }
  static bool in_window(tick_number t, const stripe& s) noexcept {
    return t >= s.window_begin && t <= s.window_last;
  }
  tick_number begin_of_block(tick_number t) const noexcept { return t >> block_shift_ << block_shift_; }

  template <class T>
  static void write(hint<T>& h, T value) noexcept {
    if constexpr (locked)
      h.store(value);
    else
      h.store_alone(value);
  }
  /// Precondition: the due tick of `n` is set.
  void enter(node& n) noexcept {
    if constexpr (locked)
      n.wheel.release(this);
    else
      n.wheel.store_alone(this);
  }

  /// Adds `n`, whose due tick is set. If that would need memory or change the delay queue, does nothing and returns
  /// false.
  bool add_at_once(node& n, tick_number due, stripe& s) noexcept {
    if (due > s.window_last) return due > s.far_after && s.future.add_at_once(n);
    bucket& b = bucket_at(due);
    if (b.due != due || !b.nodes.has_room()) [[unlikely]]
      return false;
    b.nodes.push_back(n);
    return true;
  }

  /// Makes it legal to add() a node with this due tick. Returns whether the top of the delay queue has become earlier.
  /// Strong guarantee.
  [[gnu::noinline]] bool make_room(tick_number due, stripe& s) {
    if (in_window(due, s)) return make_room_in_bucket(due, s);
    (due < s.window_begin ? s.past : s.future).make_room(due);
    if (s.queued && s.key <= due) return false;
    s.queued = s.key_is_exact = true;
    s.key = due;
    update_window_end(s);
    return enqueue(far_entry(s), due);
  }

  bool make_room_in_bucket(tick_number due, stripe& s) {
    bucket& b = bucket_at(due);
    const bool is_new = !b.nodes.has_chunks();
    b.nodes.make_room(s.pool);
    b.due = due;
    return is_new && enqueue(bucket_of(due, mask_), due);
  }

  void add(node& n, tick_number due, stripe& s) noexcept {
    if (in_window(due, s))
      bucket_at(due).nodes.push_back(n);
    else
      (due < s.window_begin ? s.past : s.future).add(n);
  }

  // Not inlined: otherwise the fast path would save registers for it.
  [[gnu::noinline]] bool add_slowly(node& n, tick_number due, stripe& s) {
    const bool is_earliest = make_room(due, s);
    add(n, due, s);
    return is_earliest;
  }

  void erase(node& n, stripe& s) noexcept {
    s.pool.erase(n.position);
    if (n.due == s.key) s.key_is_exact = false;
  }

  /// Returns whether the top of the delay queue has become earlier.
  bool enqueue(std::size_t entry, tick_number due) noexcept {
    const std::lock_guard hold(queue_mutex_);
    const bool first = queue_.empty() || due < queue_.top_due();
    queue_.set(entry, due);
    return first;
  }
  void dequeue(std::size_t entry) noexcept {
    const std::lock_guard hold(queue_mutex_);
    queue_.remove(entry);
  }

  std::optional<top_entry> top() noexcept {
    const std::lock_guard hold(queue_mutex_);
    if (queue_.empty()) return std::nullopt;
    return top_entry{queue_.top(), queue_.top_due()};
  }
  bool is_top(const top_entry& e) noexcept {
    const std::lock_guard hold(queue_mutex_);
    return queue_.is_top(e.entry) && queue_.top_due() == e.due;
  }

  /// Whether a node is known to be due at the key of `e`. Precondition: `e` is the top.
  bool is_exact(const top_entry& e, stripe& s) noexcept {
    return e.entry > mask_ ? s.key_is_exact : buckets_[e.entry].nodes.front(s.pool) != nullptr;
  }
  /// Corrects a key that is not exact. The entry gets a later key that no node precedes, or its key becomes exact. If
  /// no node is left, the entry is removed.
  void rekey(const top_entry& e, stripe& s) noexcept {
    if (e.entry > mask_) return rekey_far(s);
    buckets_[e.entry].nodes.release(s.pool);
    dequeue(e.entry);
  }

  // wheel_core_far.hpp
  void shrink_to_fit(std::size_t stripe_index, bool in_callback) noexcept;
  void rekey_far(stripe& s) noexcept;
  chain* gather_far(tick_number due, stripe& s);
  chain* gather_past(tick_number due, stripe& s);
  void after_taking(const top_entry& e, stripe& s, bool all);
  void move_window(stripe& s, tick_number begin) noexcept;
  void update_window_end(stripe& s) noexcept;
  void redistribute(stripe& s);
  void move_to_bucket(node& n, stripe& s);

  template <class Visit>
  void for_each_in(std::size_t index, Visit& visit) const {
    const stripe& s = stripes_[index];
    for (std::size_t b = index; b <= mask_; b += stripe_mask_ + 1) buckets_[b].nodes.for_each(s.pool, visit);
    s.past.for_each(visit);
    s.future.for_each(visit);
  }

  tick_number key_of(std::size_t entry) const {
    const std::lock_guard hold(queue_mutex_);
    return *queue_.due_of(entry);
  }

  // wheel_core_fault.hpp
  std::string fault_of(std::size_t stripe_index) const;
  std::string fault_of_bucket(std::size_t index, const stripe& s) const;
  std::string fault_of_window(const stripe& s) const;
  std::string fault_of_key(const stripe& s) const;
  std::string fault_of_nodes(std::size_t stripe_index) const;

  std::size_t mask_;
  std::size_t stripe_mask_;
  int block_shift_;
  owned_array<bucket> buckets_;
  std::array<stripe, Sync::stripes> stripes_;
  delay_queue queue_;  // its entries: the buckets, followed by the far stores of each stripe
  [[no_unique_address]] mutable typename Sync::queue_mutex queue_mutex_;
};

}  // namespace rondo::detail
