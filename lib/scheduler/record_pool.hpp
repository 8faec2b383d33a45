// The records of a scheduler, free and in use, and its counters.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

/// How a timer ceases to be pending.
enum class ending : std::uint8_t {
  last_run,   // its last run begins
  over,       // no run is to come: it has ended by itself, or drain() or stop() ends it
  cancelled,  // by cancel()
  replaced,   // as cancelled, but another timer now has its place under the limit
  returned,   // stop() hands it back
  refused,    // schedule() throws: to its caller, the timer was never pending
};

/// A number that one thread at a time writes, and that others may read at any time. Uses plain loads and stores,
/// because an atomic addition would lock the bus.
class counter {
 public:
  counter() noexcept = default;
  counter(std::uint64_t value) noexcept : value_(value) {}
  counter(const counter& other) noexcept : value_(other) {}
  counter& operator=(const counter& other) noexcept {
    value_.store(other, relaxed);
    return *this;
  }

  operator std::uint64_t() const noexcept { return value_.load(relaxed); }
  void operator+=(std::uint64_t more) noexcept { value_.store(value_.load(relaxed) + more, relaxed); }
  void operator++() noexcept { value_.store(value_.load(relaxed) + 1, relaxed); }
  void operator--() noexcept { value_.store(value_.load(relaxed) - 1, relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Counts what became of the timers.
struct counters {
  counter scheduled = 0;
  counter ended = 0;  // ceased to be pending
  counter fired = 0;
  counter completed = 0;
  counter cancelled = 0;
  counter returned = 0;
  counter failed = 0;
  counter missed = 0;
  counter overlapped = 0;
  counter rejected = 0;

  std::uint64_t pending() const noexcept {
    const std::uint64_t all = scheduled;
    return all > ended ? all - ended : 0;
  }

  /// Counts a timer that ceases to be pending. If it completes with a run in progress, the end of that run counts it as
  /// completed.
  void count(ending how, bool running) noexcept {
    if (how == ending::refused) {
      --scheduled;
      return;
    }
    ++ended;
    if (how == ending::last_run) ++fired;
    if (how == ending::over && !running) ++completed;
    if (how == ending::cancelled || how == ending::replaced) ++cancelled;
    if (how == ending::returned) ++returned;
  }

  counters& operator+=(const counters& other) noexcept {
    scheduled += other.scheduled;
    ended += other.ended;
    fired += other.fired;
    completed += other.completed;
    cancelled += other.cancelled;
    returned += other.returned;
    failed += other.failed;
    missed += other.missed;
    overlapped += other.overlapped;
    rejected += other.rejected;
    return *this;
  }
};

/// A set of block numbers, as bits. Only one thread at a time may use it, except for size().
class block_set {
 public:
  /// May be called at any time.
  std::uint64_t size() const noexcept { return size_; }
  bool contains(std::size_t block) const noexcept {
    return block / bits < words_.size() && (words_[block / bits] >> block % bits & 1U) != 0;
  }

  /// Makes it legal to insert() all numbers below `end`. Strong guarantee.
  void reserve(std::size_t end) {
    if (words_.size() * bits < end) words_.resize((end + bits - 1) / bits);
  }
  /// Precondition: it does not contain `block`.
  void insert(std::size_t block) noexcept {
    words_[block / bits] |= std::uint64_t{1} << block % bits;
    if (block / bits < first_) first_ = block / bits;
    ++size_;
  }
  /// Removes and returns the smallest number. Precondition: the set is not empty.
  std::size_t take_first() noexcept {
    while (words_[first_] == 0) ++first_;
    const std::size_t block = first_ * bits + static_cast<std::size_t>(std::countr_zero(words_[first_]));
    words_[first_] &= words_[first_] - 1;
    --size_;
    return block;
  }

 private:
  static constexpr std::size_t bits = 64;

  std::vector<std::uint64_t> words_;
  std::size_t first_ = 0;  // no word before it has a bit set
  counter size_;
};

/// Free records and counters are in shards. Most shards belong to one thread each, which uses its shard without a lock;
/// any further threads share the other shards. A shard keeps at most two magazines of free records (Bonwick and Adams,
/// "Magazines and vmem", 2001): the one in use, and a spare one that is full or empty. Full magazines for which a shard
/// has no place are in the depot, where shards without free records find them. So a record that one thread takes and
/// another gives back is reused, and the depot's lock is taken for one record in 64. Records do not move until the pool
/// is destroyed, so anybody may read any of them at any time.
///
/// Memory: records are created in blocks, each as large as a magazine. shrink_to_fit() gives the pages of blocks whose
/// records are all free back to the system, and puts these blocks aside; they then read as zero. Before the pool asks
/// for new memory, it creates records in these blocks again, with generations that none of their timers had.
///
/// Memory order: only its owner writes a shard. When that thread ends, sync::thread_number() hands its number on, which
/// orders what both threads do. Other threads read only the counters, relaxed: see total().
class record_pool {
  // How many records are in a full magazine, and how many are made at a time.
  static constexpr std::uint32_t batch = 64;

  /// Free records, each linked to the next.
  struct magazine {
    record* first = nullptr;
    counter size;

    void push(record& r) noexcept {
      r.set_next_free(std::exchange(first, &r));
      ++size;
    }
  };

  struct alignas(128) shard {
    magazine in_use;
    magazine spare;
    counters counts;
    std::uint64_t last_number = 0;
    sync::shard_mutex mutex;  // used only if threads share the shard
  };

 public:
  /// The calling thread's shard. While this object lives, no other thread uses the shard.
  struct own_shard {
    explicit own_shard(record_pool& pool, std::size_t thread = sync::thread_number()) noexcept
        : is_shared(thread >= sync::own_shards),
          here(pool.shards_[is_shared ? sync::own_shards + (thread - sync::own_shards) % sync::shared_shards
                                      : thread]) {
      if (is_shared) here.mutex.lock();
    }
    ~own_shard() {
      if (is_shared) here.mutex.unlock();
    }
    own_shard(const own_shard&) = delete;
    own_shard& operator=(const own_shard&) = delete;

    const bool is_shared;
    shard& here;
  };

  record_pool() = default;
  record_pool(const record_pool&) = delete;
  record_pool& operator=(const record_pool&) = delete;
  ~record_pool() {
    for_each([](record& r) { std::destroy_at(&r); });
    for (auto& segment : segments_) ::operator delete(segment.load(), segment_alignment());
  }

  /// Returns a free record, counted as scheduled. Strong guarantee.
  record& take() {
    const own_shard mine(*this);
    magazine& stock = mine.here.in_use;
    if (stock.first == nullptr) [[unlikely]]
      refill(mine.here);
    ++mine.here.counts.scheduled;
    --stock.size;
    return *std::exchange(stock.first, stock.first->next_free());
  }

  /// Precondition: `r` is known only through ids of earlier generations.
  void give_back(record& r) noexcept { give_back(r, own_shard(*this)); }
  void give_back(record& r, const own_shard& mine) noexcept {
    if (mine.here.in_use.size == batch) [[unlikely]]
      make_room(mine.here);
    mine.here.in_use.push(r);
  }

  /// The reading of a clock, or more, so that later calls by the same thread return greater numbers, and that it is at
  /// least `least`.
  std::uint64_t number(std::uint64_t reading, std::uint64_t least) noexcept {
    const own_shard mine(*this);
    return mine.here.last_number = std::max({reading, mine.here.last_number + 1, least});
  }

  /// The sum over all shards, read one after another. It includes what was counted before: by this thread, or by
  /// another one before something that this one has acquired, for example the lock of a record that the other released
  /// afterwards.
  counters total() const noexcept {
    counters sum;
    for (const shard& s : shards_) sum += s.counts;
    return sum;
  }

  /// The record in `slot`, or null if there never was one; or if the slot has come from another thread without an order,
  /// as with an id in a relaxed atomic, and this thread does not know yet that there is one.
  record* find(std::uint32_t slot) const noexcept {
    return slot < slots_.load(std::memory_order_acquire) ? &at(slot) : nullptr;
  }

  /// How many records there are, and how many of them are free: read shard by shard.
  std::size_t slots() const noexcept { return slots_.load(relaxed); }
  std::size_t free() const noexcept {
    std::uint64_t count = (batches_in_depot_ + aside_.size()) * batch;
    for (const shard& s : shards_) count += s.in_use.size + s.spare.size;
    return static_cast<std::size_t>(count);
  }

  /// Calls visit(record&) for every record that was ever in use, except for those put aside. A record that is being
  /// created is visited, unless an earlier core::drain() or core::stop() prevents it from being used. This requires
  /// sequential consistency here, or the depot's lock.
  template <class Visit>
  void for_each(Visit&& visit) const {
    any_of([&](record& r) {
      visit(r);
      return false;
    });
  }
  /// As for_each(), but ends with the first record for which it returns true. Returns whether there was one.
  template <class Predicate>
  bool any_of(Predicate&& holds) const {
    const std::uint32_t end = slots_.load(std::memory_order_seq_cst);
    for (std::uint32_t slot = 0; slot != end; ++slot) {
      if (slot % batch == 0 && is_aside(slot / batch))
        slot += batch - 1;
      else if (holds(at(slot)))
        return true;
    }
    return false;
  }

  /// Gives memory of free records back, if the system supports this: the memory of blocks whose records are all free,
  /// with none of them in another thread's shard. Before that, calls leave_wheel() for each of the free records that it
  /// finds. Does nothing if there is no memory for its own work, a bit for each record. May be called at any time; locks
  /// are held only briefly. O(free records).
  void shrink_to_fit(const std::function<void(record&)>& leave_wheel) noexcept;

 private:
  // Segment s holds batch * 2^s records, so that a slot is found with a count of leading zeros. A segment's memory is
  // allocated at once, but touched only when records are made.
  static std::size_t segment_of(std::uint32_t slot) noexcept {
    return static_cast<std::size_t>(std::bit_width(slot / batch + 1)) - 1;
  }
  static std::uint64_t begin_of(std::size_t segment) noexcept {
    return ((std::uint64_t{1} << segment) - 1) * batch;
  }
  /// (If std::size_t has 32 bits, memory runs out before the size of a segment overflows, because the segments before
  /// it together are about as large.)
  static std::size_t size_of(std::size_t segment) noexcept { return std::size_t{batch} << segment; }

  /// Precondition: the caller has acquired a number of slots that includes this one, has made the record or got it from
  /// somebody, or has locked the depot. So it knows the segment.
  record& at(std::uint32_t slot) const noexcept {
    const std::size_t s = segment_of(slot);
    return segments_[s].load(relaxed)[slot - begin_of(s)];
  }

  // Not inlined: otherwise take() and give_back() would save registers for them.
  [[gnu::noinline]] void refill(shard& mine);
  [[gnu::noinline]] void make_room(shard& mine) noexcept;
  void make_batch(magazine& into);
  static std::align_val_t segment_alignment() noexcept;
  static std::uint32_t droppable_blocks() noexcept;
  bool is_aside(std::uint32_t block) const noexcept;
  void revive_batch(magazine& into) noexcept;
  record* gather() noexcept;
  template <class Visit>
  static void for_each_of(record* batches, Visit&& visit);
  std::vector<std::uint64_t> find_blocks(record* batches) noexcept;
  void put_units_aside(std::vector<std::uint64_t>& found) noexcept;
  bool put_aside(std::uint32_t first_block) noexcept;

  std::array<shard, sync::own_shards + sync::shared_shards> shards_;
  // Guards the creation of records, and the next five members.
  mutable sync::depot_mutex depot_mutex_;
  block_set aside_;  // blocks whose memory was given back
  // The generation and arming that records made from these blocks get: not less than any of them had.
  std::uint64_t least_generation_ = 1;
  std::uint64_t least_arming_ = 1;
  record* depot_ = nullptr;  // the first of the first full magazine; its `next_batch` is that of the next one
  counter batches_in_depot_;
  sync::atomic<std::uint32_t> slots_{0};  // records made so far
  std::array<sync::atomic<record*>, 27> segments_{};
};

}  // namespace rondo::detail
