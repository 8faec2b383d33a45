// The wheel. It is single-threaded: no locks, no clock, no callables. This is how it works.
//
// Ticks. A tick is a point in the wheel's time: an absolute 64-bit number, so nothing is decremented or moved as time
// passes. Tick t has the bucket `t mod buckets`; its round is `t / buckets`, rounded down. So far this is the hashed
// wheel of Varghese and Lauck ("Hashed and hierarchical timing wheels", 1987), in which a bucket has timers of all
// rounds.
//
// The window. Here a bucket holds the nodes of one tick only. The buckets cover a window of as many ticks as there are
// buckets. An eighth of the window is a block, and the window begins at a multiple of a block. It moves forward as
// nodes of later blocks are taken. Nodes due after the window are in the far lists `future_`. Nodes due before it,
// which are overdue, are in the far lists `past_`.
//
// Chunks. The nodes of a bucket or far list are in a chain of chunks, each an array of 64 slots. A node knows the
// number of its slot. erase() empties the slot and leaves a hole, without knowing the chain; a chunk that is two thirds
// holes is merged with its neighbours. A chain keeps the order of insertion. Either all nodes of one tick are in one
// chain, or the older ones have been redistributed and the others not yet. So they are taken in the order of insertion.
//
// Far lists. They are a radix heap with octal digits (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the
// shortest path problem", 1990): the further away the ticks of a list are, the coarser it is. As the window moves, the
// lists that it has reached are redistributed, in order, to buckets and to finer lists. This is done in parts of 4,096
// nodes, one or two for each tick that is taken. In between, the window ends before the first tick that is not yet
// redistributed, and new nodes of such ticks queue up behind the old ones. If such a tick is due, only its nodes are
// extracted.
//
// Cancelling and moving in place. Most timeouts are cancelled, and set again for later. So cancel() of a node in the far
// lists of the future only marks it, and schedule() for the same tick or a later one only writes the new tick: one cache
// line each. When its list is redistributed, a cancelled node is dropped, and a moved one goes where it is due then. So
// it never enters a bucket or the delay queue on the way. (JDK 25's DelayScheduler and tokio's alternative timer are lazy
// in the same spirit.)
//
// Order. A moved node is among older nodes of its new tick, or before them. So each far node has a number from one count,
// and a bucket to which nodes were redistributed in another order is sorted when it becomes the earliest. Other nodes
// need no number: nodes are added to a bucket directly only after all far nodes of its tick.
//
// The delay queue. It is a mutable Fibonacci heap (Fredman and Tarjan, "Fibonacci heaps and their uses in improved
// network optimization algorithms", 1987) of buckets, not of nodes. A bucket with chunks has an entry, whose key is the
// tick of its nodes. One more entry represents all far nodes. A driver sleeps until next_due(), the top's key. Ticks
// without nodes are never visited.
//
// Early keys. A key is never later than the earliest node of its entry, but it may be earlier: cancelling does not touch
// the queue, and the key of the far nodes may be the first tick of a list. Only the top's key matters. take() and
// next_due() check whether a node is due at it. If not, they remove the bucket's entry or correct the far nodes' key,
// and try again with the new top. So after the earliest timer was cancelled, a driver may wake up once for nothing.
//
// Costs. insert() writes the node, its slot and the end of a chain, in O(1) amortised; it changes the queue only for
// the first chunk of a bucket and for an earlier key of the far nodes, also in O(1). cancel() is O(1) amortised. take()
// is O(1) for each node, plus O(log entries) for each tick to remove its entry. A node is redistributed at most once for
// each octal digit of its distance in blocks, and once more for each list that it has outlived in place. next_due() is
// O(1) if the top's key is exact; finding the earliest node of the far lists takes a 64th of their length, more after
// cancellations and moves in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/detail/chunks.hpp>
#include <rondo/detail/delay_queue.hpp>
#include <rondo/detail/far_lists.hpp>
#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// `buckets` rounded up to a power of two. Throws std::invalid_argument unless 1 <= buckets <= max_buckets.
RONDO_EXPORT std::size_t checked_buckets(std::size_t buckets);

class RONDO_EXPORT wheel_core {
 public:
  /// Throws std::invalid_argument and std::bad_alloc.
  explicit wheel_core(std::size_t buckets, tick_number now = 0);
  wheel_core(const wheel_core&) = delete;
  wheel_core& operator=(const wheel_core&) = delete;

  /// Schedules `n`, or moves it from its present place, in this wheel or another. Strong guarantee.
  void schedule(node& n, tick_number due) {
    if (n.wheel == nullptr) {
      insert(n, due);
      n.due = due;
      n.wheel = this;
      ++size;
    } else if (n.wheel != this || !move_in_place(n, due)) {
      move(n, due);
    }
  }
  /// Cancels `n`. If it is not near, it stays in its slot, n.wheel stays as it is, and n.due must not change until
  /// schedule() or erase(). Precondition: `n` is scheduled in this wheel.
  void cancel(node& n) noexcept {
    --size;
    if (n.due == far_key_) far_key_is_exact_ = false;
    if (n.is_near() || is_eager_) {
      n.wheel = nullptr;
      pool_.erase(n.position);
    } else {
      n.rank &= ~node::state_bits;
      if (++pool_.cancelled > 2 * size + most_cancelled) [[unlikely]]
        sweep_for_cancel();
    }
  }
  /// Removes `n` from its slot. Precondition: `n` is in this wheel, perhaps cancelled.
  void erase(node& n) noexcept {
    if (n.is_cancelled()) {
      --pool_.cancelled;
    } else {
      --size;
      if (n.due == far_key_) far_key_is_exact_ = false;
    }
    n.wheel = nullptr;
    pool_.erase(n.position);
  }

  /// The earliest tick, while its nodes are being taken. (In two registers: firing takes a fifth fewer instructions than
  /// with a larger type.)
  struct open_tick {
    chain* nodes;  // null if there is no such tick
    tick_number due;
  };
  /// Finds the nodes of the earliest tick, if that is at or before `to`. For each tick, or for 4,096 nodes of one, at
  /// most two parts of far nodes are redistributed by open() and close(), and one if there is no such tick. Overdue nodes
  /// are redistributed until those of the earliest tick have a list. While two thirds of all nodes are cancelled ones, a
  /// part is swept each time. Throws std::bad_alloc; then no node is lost.
  open_tick open(tick_number to) {
    while (queue_.top != delay_queue::none && queue_.top_due <= to)
      if (const open_tick t = try_open(); t.nodes != nullptr) return t;
    move_on(to);
    return {nullptr, 0};
  }
  /// A step of open(), for those who unlock the wheel in between: corrects an early key, or redistributes a part. The
  /// tick is open if nothing was left to do. Precondition: next_key() is not never_tick.
  open_tick try_open();
  /// Removes the first node of an open tick. Returns null if none is left, or if another tick is the earliest now.
  /// Anything may be done to the wheel between two calls.
  node* take(open_tick t) noexcept {
    if (queue_.top_due != t.due) return nullptr;
    node* const n = t.nodes->front(pool_);
    if (n == nullptr) return nullptr;
    t.nodes->pop_front(pool_);
    if (t.due == far_key_) far_key_is_exact_ = false;
    n->wheel = nullptr;
    --size;
    return n;
  }
  /// Must be called after the last take(), unless that threw. Throws std::bad_alloc; then no node is lost.
  void close(open_tick t);

  /// A tick that no node precedes, or never_tick if there is no node.
  tick_number next_key() const noexcept {
    return queue_.top != delay_queue::none ? queue_.top_due : never_tick;
  }
  /// Whether a node is known to be due at next_key(). Precondition, also of correct_key(): the queue is not empty.
  bool key_is_exact() noexcept {
    return queue_.top > mask_ ? far_key_is_exact_ : buckets_[queue_.top].nodes.front(pool_) != nullptr;
  }
  /// Corrects a key that is not exact: the entry gets a later key that no node precedes, or its key becomes exact. If no
  /// node is left, the entry is removed.
  void correct_key() noexcept;
  /// The due tick of the earliest node, or none if there is no node. Corrects early keys.
  std::optional<tick_number> next_due() noexcept;

  /// Gives back the chunks, segments, tables and far lists that hold no node. Nodes do not move. O(buckets + segments),
  /// plus O(1) for each chunk of cancelled nodes. While a tick is open, the far lists that take() may read stay.
  void shrink_to_fit(bool is_open = false) noexcept;

  /// The number of buckets.
  std::size_t buckets() const noexcept { return mask_ + 1; }

  /// Calls visit(node&) for each scheduled node: those of one tick in the order of insertion, but for nodes that were
  /// moved in place, and ticks in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_linked([&](node& n) {
      if (!n.is_cancelled()) visit(n);
    });
  }
  /// As for_each(), but also visits cancelled nodes that are still in their slots.
  template <class Visit>
  void for_each_linked(Visit&& visit) const {
    for (const bucket& b : buckets_) b.nodes.for_each(pool_, visit);
    past_.for_each(visit);
    future_.for_each(visit);
  }

  /// Calls visit(bucket, key, each) for each entry of the delay queue. `bucket` is the number of a bucket, or none for
  /// the entry of the far nodes. `key` is the entry's key, which may be early. each(f) calls f(node&) for each node that
  /// the entry represents.
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    for (std::size_t b = 0; b <= mask_; ++b)
      if (const std::optional<tick_number> key = queue_.due_of(b))
        visit(std::optional(b), *key, [&](auto&& f) { buckets_[b].nodes.for_each(pool_, f); });
    if (const std::optional<tick_number> key = queue_.due_of(buckets_.size()))
      visit(std::optional<std::size_t>(), *key, [&](auto&& f) {
        past_.for_each(f);
        future_.for_each([&](node& n) {
          if (!n.is_cancelled()) f(n);
        });
      });
  }

  /// See detail/checks.hpp. O(buckets + nodes).
  std::string fault() const;
  /// After some of the calls of rondo::wheel, verifies the invariants and `size`, and calls die() if one is broken.
  void check_periodically(const char* after) noexcept;

  /// The number of scheduled nodes.
  std::size_t size = 0;
  /// How many far nodes are redistributed at a time, and how many are searched for cancelled ones. A part of 4,096 takes
  /// about 0.1 ms, because most nodes miss the cache. Tests choose smaller parts.
  std::uint32_t part = 4096;
  /// Whether the nodes of a tick are taken in the order of scheduling. If not, they are never gathered and sorted, and the
  /// caller puts them in order.
  bool in_order = true;

 private:
  /// Holds the nodes of one tick of the window. It has chunks if and only if it has an entry in the delay queue.
  struct bucket {
    chain nodes;
    tick_number due = 0;
  };
  static constexpr std::uint64_t out_of_order = node::after_far;

  struct bucket_mover;

  // The window has eight blocks, so that it moves by an eighth of its length: 64 ticks of 512.
  static constexpr int window_block_bits = 3;

  std::size_t bucket_of(tick_number t) const noexcept { return static_cast<std::size_t>(t) & mask_; }
  bool must_gather() const noexcept { return in_order && !far_in_order_; }
  bool in_window(tick_number t) const noexcept { return t >= window_begin_ && t <= window_last_; }

  // While two thirds of all nodes are cancelled ones, and so many more, cancel() sweeps a chunk now and then. Without that,
  // a next_due() after a million cancellations would take 9 ms. Each cancel() adds a node to the cancelled ones and takes
  // two off their limit, so a sweep must erase three for each: in the chunk, two thirds of 63 are cancelled.
  static constexpr std::size_t most_cancelled = 32'768;
  static constexpr unsigned cancels_per_sweep = chunk_pool::chunk_nodes * 2 / 3 / 3;
  void sweep_for_cancel() noexcept;

  // If timers are set again for earlier ticks as often as for later ones, as with timeouts of many lengths, leaving them
  // in place costs more than it saves: the branch in schedule() is mispredicted, and with 100,000 timers a pair of
  // cancel and schedule takes 1.3 times as long. So if more than a quarter of `tried` far nodes were not left in place,
  // cancel() leaves none for the next `eager` ones.
  static constexpr std::uint64_t tried = 256;
  static constexpr std::uint64_t eager = 16 * tried;
  void note_refused() noexcept;

  /// Inserts `n`, which is in no wheel. The caller sets n.due and n.wheel. Strong guarantee.
  void insert(node& n, tick_number due) {
    if (due > window_last_) {
      if (due > far_after_ && future_.add_at_once(n, due)) {
        n.rank = next_far_rank();
        return;
      }
    } else {
      bucket& b = buckets_[bucket_of(due)];
      if (b.due == due && b.nodes.push_at_once(n)) {
        n.rank = node::after_far;
        return;
      }
    }
    insert_slowly(n, due);
  }
  // Not inlined: otherwise the fast path would save registers for it.
  [[gnu::noinline]] void insert_slowly(node& n, tick_number due);
  // insert() in two steps, for a node that is in a wheel: first what may fail, with the same guarantee, and after erase()
  // the rest.
  void make_room(tick_number due);
  void add(node& n, tick_number due) noexcept;
  void make_room_in_bucket(tick_number due);

  /// Moves `n`, which is in this wheel or another, perhaps cancelled. Strong guarantee.
  void move(node& n, tick_number due);
  /// Moves `n` to a tick that is not before its present one, or schedules it again after cancel(), if `n` may stay where
  /// it is; returns false if not. Precondition: `n` is in this wheel, perhaps cancelled.
  bool move_in_place(node& n, tick_number due) noexcept {
    if (n.is_near() || due < n.due) return false;
    if (n.is_cancelled()) {
      --pool_.cancelled;
      ++size;
    } else if (n.due == far_key_) {
      far_key_is_exact_ = false;
    }
    n.due = due;
    n.rank = next_far_rank();
    far_in_order_ = false;
    return true;
  }

  std::uint64_t next_far_rank() noexcept { return last_far_rank_ += node::rank_step; }
  void sort(std::size_t index);
  void correct_far_key() noexcept;
  chain* gather_far(tick_number due);
  void move_window(tick_number first) noexcept;
  void move_on(tick_number first);
  void update_window_end() noexcept;
  void redistribute();

  std::string fault_of_bucket(std::size_t index) const;
  std::string fault_of_far_nodes() const;

  // The order is that of insert().
  tick_number window_last_ = 0;  // precedes the tick of the last bucket while redistribution is in progress
  std::size_t mask_;
  int block_shift_;
  std::vector<bucket> buckets_;
  tick_number far_after_ = 0;  // every later tick has a list in `future_`, and is not before the key
  tick_number far_key_ = 0;    // of the far nodes' entry in the delay queue
  bool far_queued_ = false;    // whether they have one
  bool far_key_is_exact_ = false;
  bool far_in_order_ = true;  // no far node has been moved in place since there were none
  bool is_eager_ = false;     // cancel() leaves no node in its slot
  std::uint64_t last_far_rank_ = node::far_bit;
  chunk_pool pool_;
  far_lists future_;
  far_lists past_;
  tick_number window_begin_ = 0;  // no node in a bucket is due before it
  // The tick of the last bucket, or the last of all ticks; and the base of `future_`.
  tick_number buckets_last_ = 0;
  delay_queue queue_;  // its entries: the buckets, then one for the far nodes, buckets_.size()
  // Of the far node that was moved to each bucket last; out_of_order if one before it has a later rank.
  std::vector<std::uint64_t> last_ranks_;
  static constexpr std::size_t most_kept_sorted = 4096;
  std::vector<node*> sorted_;  // for sort(), which keeps its memory unless it is more than that
  unsigned cancels_until_sweep_ = cancels_per_sweep;
  unsigned refused_ = 0;          // nodes that could not stay in place, of those tried
  std::uint64_t trial_ends_ = 0;  // at this rank of far nodes
  std::size_t unused_check_steps_ = 0;
};

}  // namespace rondo::detail
