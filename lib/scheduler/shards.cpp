#include "scheduler/shards.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "sync/pages.hpp"

namespace rondo::detail {

shards::~shards() {
  for (std::uint32_t slot = 0; slot != slots_.load(relaxed); ++slot) std::destroy_at(&at(slot));
  for (auto& segment : segments_) ::operator delete(segment.load(relaxed), segment_alignment());
  for (const auto& each : all_) delete each.load(relaxed);
}

/// The number of slots. A record that is made later is made by a thread that sees what this one did before.
std::uint32_t shards::known_slots() const noexcept {
  const std::lock_guard hold(table_mutex_);
  return slots_.load(relaxed);
}

shards::candidate shards::first() const noexcept {
  candidate found;
  const std::size_t end = end_.load();
  for (std::size_t i = 0; i != end; ++i) {
    shard* const s = all_[i].load();
    if (s == nullptr) continue;
    const tick_number due = s->next.load();
    if (due < found.due) found = {s, due};
  }
  return found;
}

std::optional<tick_number> shards::next_due() noexcept {
  for (;;) {
    const candidate found = first();
    if (found.of != nullptr) {
      shard& s = *found.of;
      const std::lock_guard hold(s.mutex);
      const auto is_exact = [&] { return s.wheel.next_key() == never_tick || s.wheel.key_is_exact(); };
      for (int left = corrected_at_a_time; left != 0 && !is_exact(); --left) s.wheel.correct_key();
      note_key(s);
      if (!is_exact() || s.wheel.next_key() != found.due) continue;
    }
    raise_awaited(found.due);
    if (first().due < found.due) continue;
    if (found.of == nullptr) return std::nullopt;
    return found.due;
  }
}

/// Returns whether it was higher. Then the caller wakes the driver.
bool shards::lower_awaited(tick_number key) noexcept {
  tick_number awaited = awaited_.load();
  while (key < awaited)
    if (awaited_.compare_exchange_weak(awaited, key)) return true;
  return false;
}

void shards::raise_awaited(tick_number key) noexcept {
  tick_number awaited = awaited_.load();
  while (awaited < key && !awaited_.compare_exchange_weak(awaited, key)) {
  }
}

counters shards::total() const noexcept {
  counters sum;
  for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    sum += s.counts;
  });
  return sum;
}

std::string shards::fault() const {
  std::string wrong;
  for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    if (wrong.empty()) wrong = s.wheel.fault();
    if (wrong.empty() && s.next.load(relaxed) != s.wheel.next_key())
      wrong = "a shard's next tick is not its key";
  });
  for_each_timer([&](record& r, shard_lock&) {
    if (!wrong.empty()) return;
    wrong = r.fault();
    if (!wrong.empty()) wrong = "the timer in slot " + std::to_string(r.slot) + ": " + wrong;
  });
  return wrong;
}

std::size_t shards::free() const noexcept {
  std::size_t found = static_cast<std::size_t>(aside_.size()) * block;
  for_each([&](const shard& s) {
    for (const record* const list : {s.free, s.returned})
      for (const record* r = list; r != nullptr; r = r->next_free) ++found;
  });
  return found;
}

// How records are made.

record& shards::refill(std::size_t own) {
  shard& s = made(own);
  const std::lock_guard hold(s.mutex);
  if (s.returned == nullptr) s.returned = make_block(s);
  record* const first = s.returned;
  record* last = first;
  s.free_count = 0;
  for (; last->next_free != nullptr && s.free_count != block - 1; ++s.free_count) last = last->next_free;
  s.free = first == last ? nullptr : first->next_free;
  s.returned = std::exchange(last->next_free, nullptr);
  return *first;
}

record& shards::take_shared(std::size_t shared) {
  shard& s = made(shared);
  const std::lock_guard hold(s.mutex);
  if (s.returned == nullptr) s.returned = make_block(s);
  return *std::exchange(s.returned, s.returned->next_free);
}

/// The shard with that index, which is made if there is none.
shard& shards::made(std::size_t index) {
  if (shard* const s = all_[index].load(std::memory_order_acquire)) return *s;
  auto fresh = std::make_unique<shard>(static_cast<std::uint8_t>(index + 1), buckets_, begin_);
  fresh->wheel.part = sync::redistributed_at_a_time;
  const std::lock_guard hold(table_mutex_);
  if (shard* const s = all_[index].load(relaxed)) return *s;  // another thread that shares it was faster
  all_[index].store(fresh.get());                             // where first() finds it
  if (index >= end_.load(relaxed)) end_.store(index + 1);
  return *fresh.release();
}

/// Makes free records for `s`, linked. Precondition: `s` is locked.
record* shards::make_block(shard& s) {
  const std::lock_guard hold(table_mutex_);
  record* all = nullptr;
  if (aside_.size() != 0) {
    const auto first = static_cast<std::uint32_t>(aside_.take_first()) * block;
    for (std::uint32_t slot = first + block; slot-- != first;) {
      record& r = at(slot);
      r.revive(slot, least_generation_, least_arming_);
      r.next_free = std::exchange(all, &r);
      r.shard.store(s.number, std::memory_order_release);
    }
    return all;
  }
  const std::uint32_t first = slots_.load(relaxed);
  if (first > std::numeric_limits<std::uint32_t>::max() - block) throw std::bad_alloc();
  auto& segment = segments_[segment_of(first)];
  if (segment.load(relaxed) == nullptr)
    segment.store(static_cast<record*>(
                      ::operator new(sizeof(record) * size_of(segment_of(first)), segment_alignment())),
                  relaxed);
  for (std::uint32_t slot = first + block; slot-- != first;) {
    record& r = *std::construct_at(&at(slot), slot, s.number);
    r.next_free = std::exchange(all, &r);
  }
  slots_.store(first + block, std::memory_order_release);
  return all;
}

// How memory of free records is given back and used again.

/// The alignment with which blocks begin where pages do.
std::align_val_t shards::segment_alignment() noexcept {
  if constexpr (sync::drops_pages) return std::align_val_t{std::max(alignof(record), page_size())};
  return std::align_val_t{alignof(record)};
}

/// How many blocks fill whole pages, or 0 if no memory can be given back. With pages of 4 KiB, it is one.
std::uint32_t shards::droppable_blocks() noexcept {
  constexpr std::size_t block_bytes = block * sizeof(record);
  if (!sync::drops_pages || !drops_pages()) return 0;
  return static_cast<std::uint32_t>(std::lcm(block_bytes, page_size()) / block_bytes);
}

void shards::shrink_to_fit() noexcept {
  if constexpr (sync::drops_pages) {
    if (droppable_blocks() != 0) {
      record* left = gather();
      std::vector<std::uint64_t> found = find_blocks(left);
      if (!found.empty()) {
        put_units_aside(found);
        left = nullptr;
        for (std::uint32_t b = 0; b != found.size(); ++b)
          for (; found[b] != 0; found[b] &= found[b] - 1) {
            record& r = at(b * block + static_cast<std::uint32_t>(std::countr_zero(found[b])));
            r.next_free = std::exchange(left, &r);
          }
      }
      while (left != nullptr) {
        record& r = *std::exchange(left, left->next_free);
        shard& s = of(r);
        s.mutex.lock();
        give_back(r, s);
      }
    }
  }
  for_each([this](shard& s) {
    const std::lock_guard hold(s.mutex);
    s.wheel.shrink_to_fit();
    note_key(s);
  });
}

/// Takes the free records that the caller can have: its own, and the returned ones. They leave the wheels.
record* shards::gather() noexcept {
  record* all = nullptr;
  for_each([&](shard& s) {
    std::array<record*, 2> lists{};
    {
      const std::lock_guard hold(s.mutex);
      lists[0] = std::exchange(s.returned, nullptr);
      if (is_own(s)) {
        lists[1] = std::exchange(s.free, nullptr);
        s.free_count = 0;
      }
    }
    for (record* list : lists)
      while (list != nullptr) {
        record& r = *std::exchange(list, list->next_free);
        const std::lock_guard hold(s.mutex);
        if (r.wheel != nullptr) r.wheel->erase(r);
        r.next_free = std::exchange(all, &r);
      }
  });
  return all;
}

/// Returns, for each block, a bit for each of its records that is in `all`. Empty if there is no memory; otherwise
/// `aside_` has room for all blocks.
std::vector<std::uint64_t> shards::find_blocks(record* all) noexcept {
  std::vector<std::uint64_t> found;
  try {
    found.resize(slots() / block);
    const std::lock_guard hold(table_mutex_);
    aside_.reserve(found.size());
  } catch (const std::bad_alloc&) {
    return {};
  }
  for (; all != nullptr; all = all->next_free)
    found[all->slot / block] |= std::uint64_t{1} << all->slot % block;
  return found;
}

/// Puts the blocks aside that fill whole pages and are complete, and removes them from `found`.
void shards::put_units_aside(std::vector<std::uint64_t>& found) noexcept {
  static_assert(block == 64);  // bits
  const std::uint64_t unit = droppable_blocks();
  std::uint64_t begin = 0;  // of a segment; a unit lies within one
  for (std::uint64_t size = 1; begin < found.size(); begin += std::exchange(size, 2 * size)) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + size, found.size());
    for (std::uint64_t first = begin; first + unit <= end; first += unit) {
      const auto of_unit = found.begin() + static_cast<std::ptrdiff_t>(first);
      const auto is_there = [](std::uint64_t bits) { return bits == ~std::uint64_t{0}; };
      if (!std::all_of(of_unit, of_unit + static_cast<std::ptrdiff_t>(unit), is_there)) continue;
      put_aside(static_cast<std::uint32_t>(first));
      std::fill_n(of_unit, unit, 0);
    }
  }
}

/// Gives back the memory of a unit whose records are free and belong to the caller, if the system takes it. (It does not
/// if the memory is locked.) The blocks of a unit may belong to several shards.
void shards::put_aside(std::uint32_t first_block) noexcept {
  const std::uint32_t blocks = droppable_blocks();
  const std::uint32_t begin = first_block * block;
  const std::uint32_t end = begin + blocks * block;
  std::uint64_t generation = 0;
  std::uint64_t arming = 0;
  for (std::uint32_t slot = begin; slot != end; ++slot) {
    record& r = at(slot);
    const shard_lock hold(of(r).mutex);
    generation = std::max(generation, r.generation);
    arming = std::max(arming, r.arming.load(relaxed));
    r.shard.store(0, relaxed);  // from now on, nobody reads it
  }
  const std::lock_guard hold(table_mutex_);
  drop_pages(&at(begin), sizeof(record) * (end - begin));
  least_generation_ = std::max(least_generation_, generation);
  least_arming_ = std::max(least_arming_, arming);
  for (std::uint32_t b = 0; b != blocks; ++b) aside_.insert(first_block + b);
}

}  // namespace rondo::detail
