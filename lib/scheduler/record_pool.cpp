#include "scheduler/record_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "sync/pages.hpp"

namespace rondo::detail {

/// Precondition: no magazine of the shard has a record, except perhaps the spare one.
void record_pool::refill(shard& mine) {
  if (mine.spare.first != nullptr) {
    mine.in_use = std::exchange(mine.spare, {});
    return;
  }
  const std::lock_guard hold(depot_mutex_);
  if (depot_ == nullptr) return aside_.size() != 0 ? revive_batch(mine.in_use) : make_batch(mine.in_use);
  mine.in_use = {depot_, batch};
  depot_ = depot_->next_batch;
  --batches_in_depot_;
}

/// Precondition: the magazine in use is full.
void record_pool::make_room(shard& mine) noexcept {
  if (mine.spare.first != nullptr) {
    const std::lock_guard hold(depot_mutex_);
    mine.spare.first->next_batch = depot_;
    depot_ = mine.spare.first;
    ++batches_in_depot_;
  }
  mine.spare = std::exchange(mine.in_use, {});
}

/// Precondition: the depot is locked.
void record_pool::make_batch(magazine& into) {
  const std::uint32_t first = slots_.load(relaxed);
  if (first > std::numeric_limits<std::uint32_t>::max() - batch) throw std::bad_alloc();
  auto& segment = segments_[segment_of(first)];
  if (segment.load(relaxed) == nullptr)
    segment.store(static_cast<record*>(
                      ::operator new(sizeof(record) * size_of(segment_of(first)), segment_alignment())),
                  relaxed);
  for (std::uint32_t slot = first + batch; slot-- != first;) into.push(*std::construct_at(&at(slot), slot));
  slots_.store(first + batch, std::memory_order_seq_cst);
}

// How memory of free records is given back and used again.

/// The alignment with which blocks begin where pages do.
std::align_val_t record_pool::segment_alignment() noexcept {
  if constexpr (sync::drops_pages) return std::align_val_t{std::max(alignof(record), page_size())};
  return std::align_val_t{alignof(record)};
}

/// How many blocks fill whole pages, or 0 if no memory can be given back. With pages of 4 KiB, it is one.
std::uint32_t record_pool::droppable_blocks() noexcept {
  constexpr std::size_t block_bytes = batch * sizeof(record);
  if (!sync::drops_pages || !drops_pages()) return 0;
  return static_cast<std::uint32_t>(std::lcm(block_bytes, page_size()) / block_bytes);
}

/// (A thread that finds a block aside has unlocked the depot before the block's records are made again. So the thread
/// that makes them sees what was done here before.)
bool record_pool::is_aside(std::uint32_t block) const noexcept {
  if constexpr (!sync::drops_pages) return false;
  const std::lock_guard hold(depot_mutex_);
  return aside_.contains(block);
}

/// Preconditions: the depot is locked, and blocks are aside.
void record_pool::revive_batch(magazine& into) noexcept {
  const auto first = static_cast<std::uint32_t>(aside_.take_first()) * batch;
  for (std::uint32_t slot = first + batch; slot-- != first;) {
    at(slot).revive(slot, least_generation_, least_arming_);
    into.push(at(slot));
  }
}

void record_pool::shrink_to_fit(const std::function<void(record&)>& leave_wheel) noexcept {
  if constexpr (sync::drops_pages) {
    if (droppable_blocks() == 0) return;
    record* const batches = gather();
    for_each_of(batches, leave_wheel);
    std::vector<std::uint64_t> found = find_blocks(batches);
    if (found.empty()) return for_each_of(batches, [this](record& r) { give_back(r); });
    put_units_aside(found);
    for (std::uint32_t block = 0; block != found.size(); ++block)
      for (; found[block] != 0; found[block] &= found[block] - 1)
        give_back(at(block * batch + static_cast<std::uint32_t>(std::countr_zero(found[block]))));
  }
}

/// Takes the free records that the caller can have, from the depot, its own shard and the shared ones. They are linked
/// as in the depot.
record* record_pool::gather() noexcept {
  record* batches = nullptr;
  {
    const std::lock_guard hold(depot_mutex_);
    batches = std::exchange(depot_, nullptr);
    batches_in_depot_ = 0;
  }
  const auto take_all = [&](shard& s) {
    for (magazine* const m : {&s.in_use, &s.spare}) {
      if (m->first == nullptr) continue;
      m->first->next_batch = std::exchange(batches, m->first);
      *m = {};
    }
  };
  {
    const own_shard mine(*this);
    take_all(mine.here);
  }
  for (std::size_t i = sync::own_shards; i != shards_.size(); ++i) {
    const std::lock_guard hold(shards_[i].mutex);
    take_all(shards_[i]);
  }
  return batches;
}

/// Calls visit(record&), which may give the record back, for each record.
template <class Visit>
void record_pool::for_each_of(record* batches, Visit&& visit) {
  while (batches != nullptr) {
    record* r = std::exchange(batches, batches->next_batch);
    while (r != nullptr) visit(*std::exchange(r, r->next_free()));
  }
}

/// Returns, for each block, a bit for each of its records that is in `batches`. Empty if there is no memory; otherwise
/// `aside_` has room for all blocks.
std::vector<std::uint64_t> record_pool::find_blocks(record* batches) noexcept {
  std::vector<std::uint64_t> found;
  try {
    found.resize(slots() / batch);
    const std::lock_guard hold(depot_mutex_);
    aside_.reserve(found.size());
  } catch (const std::bad_alloc&) {
    return {};
  }
  for_each_of(batches, [&](const record& r) { found[r.slot / batch] |= std::uint64_t{1} << r.slot % batch; });
  return found;
}

/// Puts the blocks aside that fill whole pages and are complete, and removes them from `found`.
void record_pool::put_units_aside(std::vector<std::uint64_t>& found) noexcept {
  static_assert(batch == 64);  // bits
  const std::uint64_t unit = droppable_blocks();
  std::uint64_t begin = 0;  // of a segment; a unit lies within one
  for (std::uint64_t size = 1; begin < found.size(); begin += std::exchange(size, 2 * size)) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + size, found.size());
    for (std::uint64_t first = begin; first + unit <= end; first += unit) {
      const auto of_unit = found.begin() + static_cast<std::ptrdiff_t>(first);
      const auto is_there = [](std::uint64_t bits) { return bits == ~std::uint64_t{0}; };
      if (std::all_of(of_unit, of_unit + static_cast<std::ptrdiff_t>(unit), is_there) &&
          put_aside(static_cast<std::uint32_t>(first)))
        std::fill_n(of_unit, unit, 0);
    }
  }
}

/// Gives back the memory of a unit whose records are free and belong to the caller. Returns false if it cannot. Nobody
/// else holds a lock that is lost with the memory. Threads that wait for such a lock then find it free, and the record
/// without their timer.
bool record_pool::put_aside(std::uint32_t first_block) noexcept {
  const std::uint32_t blocks = droppable_blocks();
  const std::uint32_t begin = first_block * batch;
  const std::uint32_t end = begin + blocks * batch;
  std::uint32_t locked = begin;
  while (locked != end && at(locked).mutex.try_lock()) ++locked;
  if (locked == end) {
    std::uint64_t generation = 0;
    std::uint64_t arming = 0;
    for (std::uint32_t slot = begin; slot != end; ++slot) {
      generation = std::max(generation, at(slot).generation());
      arming = std::max(arming, at(slot).arming.load(relaxed));
    }
    if (drop_pages(&at(begin), sizeof(record) * (end - begin))) {
      const std::lock_guard hold(depot_mutex_);
      least_generation_ = std::max(least_generation_, generation);
      least_arming_ = std::max(least_arming_, arming);
      for (std::uint32_t b = 0; b != blocks; ++b) aside_.insert(first_block + b);
      return true;
    }
  }
  while (locked != begin) at(--locked).mutex.unlock();
  return false;
}

}  // namespace rondo::detail
