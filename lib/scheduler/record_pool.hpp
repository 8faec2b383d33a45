// The records of a scheduler, free and in use, and its counters.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "scheduler/counters.hpp"
#include "scheduler/record.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

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
 public:
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
    if (mine.here.in_use.first == nullptr) [[unlikely]]
      refill(mine.here);
    ++mine.here.counts.scheduled;
    return mine.here.in_use.pop();
  }

  /// Precondition: `r` is known only through ids of earlier generations.
  void give_back(record& r) noexcept {
    const own_shard mine(*this);
    if (mine.here.in_use.size == batch) [[unlikely]]
      make_room(mine.here);
    mine.here.in_use.push(r);
  }

  /// Calls count(counters&), which adds to this thread's counters.
  template <class Count>
  void count(Count&& count) noexcept {
    const own_shard mine(*this);
    count(mine.here.counts);
  }

  /// The sum over all shards, read one after another. It includes what was counted before: by this thread, or by
  /// another one before something that this one has acquired, for example the lock of a record that the other released
  /// afterwards.
  counters total() const noexcept {
    counters sum;
    for (const shard& s : shards_) sum += s.counts;
    return sum;
  }

  /// The record in `slot`, or null if there never was one.
  record* find(std::uint32_t slot) const noexcept {
    if (slot >= slots_.load(std::memory_order_acquire)) return nullptr;
    return &at(slot);
  }

  /// How many records there are, and how many of them are free: read shard by shard.
  std::size_t slots() const noexcept { return slots_.load(std::memory_order_acquire); }
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
  /// with none of them in another thread's shard. Does nothing if there is no memory for its own work, a bit for each
  /// record. May be called at any time; locks are held only briefly. O(free records).
  void shrink_to_fit() noexcept;

 private:
  static constexpr std::uint32_t batch =
      64;  // how many records are in a full magazine, and how many are made at a time

  /// Free records, linked by `next_free`.
  struct magazine {
    record* first = nullptr;
    counter size;

    void push(record& r) noexcept {
      r.next_free = first;
      first = &r;
      ++size;
    }
    record& pop() noexcept {
      record& r = *first;
      first = r.next_free;
      --size;
      return r;
    }
  };

  struct alignas(128) shard {
    magazine in_use;
    magazine spare;
    counters counts;
    sync::shard_mutex mutex;  // used only if threads share the shard
  };

  /// The calling thread's shard.
  struct own_shard {
    explicit own_shard(record_pool& pool) noexcept
        : number(sync::thread_number()),
          here(pool.shards_[is_shared() ? sync::own_shards + (number - sync::own_shards) % sync::shared_shards
                                        : number]) {
      if (is_shared()) here.mutex.lock();
    }
    ~own_shard() {
      if (is_shared()) here.mutex.unlock();
    }
    own_shard(const own_shard&) = delete;
    own_shard& operator=(const own_shard&) = delete;
    bool is_shared() const noexcept { return number >= sync::own_shards; }

    const std::size_t number;  // of the thread
    shard& here;
  };

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

  record& at(std::uint32_t slot) const noexcept {
    const std::size_t s = segment_of(slot);
    return segments_[s].load(std::memory_order_acquire)[slot - begin_of(s)];
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
  record* depot_ = nullptr;  // the first of the first full magazine; its `next` is that of the next one
  counter batches_in_depot_;
  sync::atomic<std::uint32_t> slots_{0};  // records made so far
  std::array<sync::atomic<record*>, 27> segments_{};
};

}  // namespace rondo::detail
