// The wheel itself: buckets and the delay queue. One piece of code, locked or not.
#pragma once

#include <bit>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include <rondo/detail/bucket.hpp>
#include <rondo/detail/delay_queue.hpp>
#include <rondo/detail/node.hpp>
#include <rondo/detail/owned_array.hpp>
#include <rondo/detail/ticks.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// std::invalid_argument unless 1 <= buckets <= max_buckets; the number rounded up to a power of two.
RONDO_EXPORT std::size_t checked_buckets(std::size_t buckets);

/// The locks of a wheel that only one thread uses: none.
struct unlocked {
  struct mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
  };
  using bucket_mutex = mutex;
  using queue_mutex = mutex;
};

/// Sync names the locks: `bucket_mutex`, of which each bucket has one,
/// and `queue_mutex` for the delay queue, taken inside a bucket's lock and only when that bucket's entry
/// changes. With real locks, all members are legal from any thread, but calls about one and the same node
/// must not overlap.
///
/// A bucket's key in the delay queue is never later than the bucket's earliest node. It is earlier after
/// cancel(), which leaves the queue alone: who comes upon such a bucket at the top corrects the key.
template <class Sync>
class wheel_core : public wheel_base {
 public:
  explicit wheel_core(std::size_t buckets)
      : mask_(checked_buckets(buckets) - 1),
        round_shift_(static_cast<int>(std::bit_width(mask_))),
        buckets_(mask_ + 1),
        entries_(mask_ + 1),
        queue_(mask_ + 1) {}
  wheel_core(const wheel_core&) = delete;
  wheel_core& operator=(const wheel_core&) = delete;

  std::size_t buckets() const noexcept { return mask_ + 1; }

  /// Puts `n` into the wheel. `gate` is asked and told inside the lock of the bucket, so before anybody can
  /// take `n` out again: gate.open() whether it may go in, false is then the result; gate.earliest() that the
  /// top of the delay queue has become earlier. Strong guarantee. Precondition: `n` is in no wheel.
  template <class Gate>
  bool schedule(node& n, tick_number due, Gate&& gate) {
    guarded_bucket& b = bucket_at(due);
    const std::lock_guard hold(b.mutex);
    if (!gate.open()) return false;
    if (b.add_to_next(n, due)) [[likely]]
      n.wheel = this;
    else if (schedule_slowly(n, due, b))
      gate.earliest();
    return true;
  }

  /// The same for a node that may be in this or another wheel. When nothing can fail any more gate.leave(n)
  /// is called, to take it out of another wheel, say.
  template <class Gate>
  [[gnu::noinline]] bool reschedule(node& n, tick_number due, Gate&& gate) {
    guarded_bucket& b = bucket_at(due);
    const pair_lock hold(b, bucket_at(n.due));
    if (!gate.open()) return false;
    const auto where = b.make_room(due, round_shift_);
    gate.leave(n);
    if (n.wheel == this) bucket_at(n.due).erase(n, round_shift_);
    b.add(n, due, where, round_shift_);
    n.wheel = this;
    if (note_earlier(bucket_of(due, mask_), due)) gate.earliest();
    return true;
  }

  /// False if `n` is not here.
  bool cancel(node& n) noexcept {
    guarded_bucket& b = bucket_at(n.due);
    const std::lock_guard hold(b.mutex);
    if (n.wheel != this) return false;
    b.erase(n, round_shift_);
    n.wheel = nullptr;
    return true;
  }

  /// Takes the nodes due at or before `to` out of the wheel, earliest ticks first and in the order of
  /// scheduling within a tick, and calls on_due(node&, tick) for each, at most `limit` times; returns how
  /// often. Before each call the node has left the wheel. on_due is called inside the bucket's lock; without
  /// locks it may do anything to the wheel.
  template <class OnDue>
  std::size_t take_due(tick_number to, std::size_t limit, OnDue&& on_due) {
    std::size_t taken = 0;
    while (taken != limit) {
      const std::size_t first = first_due_bucket(to);
      if (first == none) break;
      guarded_bucket& b = buckets_[first];
      const std::lock_guard hold(b.mutex);
      // The locks were free for a moment: the bucket may have changed, and others may come first now.
      if (!b.has_next() || b.next_due() > to || !is_top(first, b.next_due())) continue;
      const tick_number tick = b.next_due();
      do {
        node& n = b.take_first();
        n.wheel = nullptr;
        ++taken;
        on_due(n, tick);
        // Without locks on_due may have scheduled an earlier one. With them others may, and that comes next.
      } while (taken != limit && b.has_next() && b.next_due() == tick && (locked || is_top(first, tick)));
      b.taken();
    }
    return taken;
  }

  /// The due tick of the earliest node. Corrects keys that cancel() left behind.
  std::optional<tick_number> next_due() {
    for (;;) {
      const std::optional<tick_number> key = top_due();
      if (!key || first_due_bucket(*key) != none) return key;
    }
  }

  /// Calls visit(node&) for each node, inside its bucket's lock: those of one tick in the order of
  /// scheduling, ticks in no order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i <= mask_; ++i) {
      const std::lock_guard hold(buckets_[i].mutex);
      buckets_[i].for_each(visit);
    }
  }

  /// Calls visit(index, key, const bucket&) for each bucket that holds nodes or waits in the delay queue,
  /// inside its lock. `key` (std::optional<tick_number>) is the one that it has there: see above.
  template <class Visit>
  void for_each_bucket(Visit&& visit) const {
    for (std::size_t i = 0; i <= mask_; ++i) {
      const std::lock_guard hold(buckets_[i].mutex);
      const bucket& b = buckets_[i];
      const queue_entry& entry = entries_[i];
      if (entry.queued || !b.empty()) visit(i, entry.queued ? std::optional(entry.key) : std::nullopt, b);
    }
  }

  /// See detail/checks.hpp. Legal at any time, from any thread if there are locks. O(buckets + nodes).
  std::string fault() {
    for (std::size_t i = 0; i <= mask_; ++i) {
      const std::lock_guard hold(buckets_[i].mutex);
      if (const std::string wrong = fault_of(i); !wrong.empty())
        return "bucket " + std::to_string(i) + ": " + wrong;
    }
    const std::lock_guard hold(queue_mutex_);
    return queue_.fault();
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr bool locked = !std::is_empty_v<typename Sync::bucket_mutex>;

  // With a lock, each has a cache line of its own, as threads meet there; without, the closer the better.
  static constexpr std::size_t bucket_alignment = locked ? 64 : alignof(bucket);

  struct alignas(bucket_alignment) guarded_bucket : bucket {
    [[no_unique_address]] typename Sync::bucket_mutex mutex;
  };

  /// Holds the locks of two buckets, or of one that is both.
  class pair_lock {
   public:
    pair_lock(guarded_bucket& a, guarded_bucket& b) noexcept
        : first_(&a < &b ? a : b), second_(&a < &b ? b : a) {
      first_.mutex.lock();
      if (&first_ != &second_) second_.mutex.lock();
    }
    ~pair_lock() {
      if (&first_ != &second_) second_.mutex.unlock();
      first_.mutex.unlock();
    }
    pair_lock(const pair_lock&) = delete;
    pair_lock& operator=(const pair_lock&) = delete;

   private:
    guarded_bucket& first_;  // in the order of their addresses: nobody holds them the other way round
    guarded_bucket& second_;
  };

  /// A bucket's entry in the delay queue; guarded by the bucket's lock. Apart from the bucket, to keep that
  /// small: it is looked at only when the bucket gets a new next round.
  struct queue_entry {
    tick_number key = 0;
    bool queued = false;
  };

  guarded_bucket& bucket_at(tick_number t) noexcept { return buckets_[bucket_of(t, mask_)]; }

  // Not inlined: that would make the fast path save registers for it.
  [[gnu::noinline]] bool schedule_slowly(node& n, tick_number due, guarded_bucket& b) {
    const bool later = b.add_to_later(n, due, round_shift_);
    if (!later) b.add(n, due, b.make_room(due, round_shift_), round_shift_);
    n.wheel = this;
    if (later && b.has_next()) return false;  // whose key is no later than that
    return note_earlier(bucket_of(due, mask_), due);
  }

  /// Keeps the key no later than `due`. True: the top of the delay queue has become earlier.
  bool note_earlier(std::size_t index, tick_number due) noexcept {
    queue_entry& entry = entries_[index];
    if (entry.queued && entry.key <= due) return false;
    const std::lock_guard hold(queue_mutex_);
    const bool first = queue_.empty() || due < queue_.top_due();
    queue_.set(index, due);
    entry = {due, true};
    return first;
  }

  bool is_top(std::size_t bucket, tick_number tick) noexcept {
    const std::lock_guard hold(queue_mutex_);
    return queue_.is_top(bucket) && queue_.top_due() == tick;
  }

  std::optional<tick_number> top_due() noexcept {
    const std::lock_guard hold(queue_mutex_);
    if (queue_.empty()) return std::nullopt;
    return queue_.top_due();
  }

  /// The bucket with the earliest next round, if that is due at or before `to`; corrects the keys it comes
  /// upon.
  std::size_t first_due_bucket(tick_number to) {
    for (;;) {
      std::size_t first = none;
      {
        const std::lock_guard hold(queue_mutex_);
        if (queue_.empty() || queue_.top_due() > to) return none;
        first = queue_.top_bucket();
      }
      if (key_is_right(buckets_[first], first)) return first;
    }
  }

  /// Whether the bucket's key in the delay queue is that of its next round; if it is not, it is afterwards, or
  /// after a few more calls.
  bool key_is_right(guarded_bucket& b, std::size_t index) {
    const std::lock_guard hold(b.mutex);
    if (!b.bring_up_next(round_shift_)) return false;  // and lets others have the lock for a moment
    queue_entry& entry = entries_[index];
    if (b.has_next() && entry.queued && entry.key == b.next_due()) return true;
    const std::lock_guard hold_queue(queue_mutex_);
    entry.queued = b.has_next();
    if (entry.queued) {
      entry.key = b.next_due();
      queue_.set(index, entry.key);
    } else {
      queue_.remove(index);
    }
    return false;
  }

  /// Of a bucket, locked.
  std::string fault_of(std::size_t index) {
    const bucket& b = buckets_[index];
    const queue_entry& entry = entries_[index];
    if (b.empty() && !entry.queued) return "";  // (if the delay queue has it, it is looked at in vain)
    std::string wrong = b.fault(round_shift_);
    b.for_each([&](const node& n) {
      if (!wrong.empty()) return;
      const char* const what = n.wheel != this                    ? "in no wheel, or in another"
                               : bucket_of(n.due, mask_) != index ? "of another bucket"
                               : !entry.queued                    ? "and is not in the delay queue"
                               : entry.key > n.due                ? "before its key in the delay queue"
                                                                  : nullptr;
      if (what != nullptr) wrong = "it holds a node due at tick " + std::to_string(n.due) + ", " + what;
    });
    if (!wrong.empty()) return wrong;
    const std::lock_guard hold(queue_mutex_);
    const bool agree = queue_.due_of(index) == (entry.queued ? std::optional(entry.key) : std::nullopt);
    return agree ? "" : "it and the delay queue do not agree on its key";
  }

  std::size_t mask_;
  int round_shift_;
  owned_array<guarded_bucket> buckets_;
  owned_array<queue_entry> entries_;  // by bucket
  delay_queue queue_;
  [[no_unique_address]] typename Sync::queue_mutex queue_mutex_;
};

}  // namespace rondo::detail
