#include "scheduler/shards.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "scheduler/ready_list.hpp"

namespace rondo::detail {

shards::~shards() {
  for (const auto& each : all_) delete each.load(relaxed);
}

/// No shard has this index or a greater one. Those that are made later are made by threads that see what this one did before.
std::size_t shards::known_end() const noexcept {
  const std::lock_guard hold(table_mutex_);
  return end_.load(relaxed);
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

std::size_t shards::slots() const noexcept {
  std::size_t found = 0;
  for_each([&](const shard& s) {
    const std::lock_guard hold(s.mutex);
    found += (s.blocks.size() - s.gaps) * record_block::size;
  });
  return found;
}

// How records are made.

record& shards::refill(std::size_t own) {
  shard& s = made(own);
  const std::lock_guard hold(s.mutex);
  if (s.returned == nullptr) s.returned = s.add_block();
  record* const first = s.returned;
  record* last = first;
  std::uint32_t left = 0;
  for (; last->next_free != nullptr && left != taken_back - 1; ++left) last = last->next_free;
  s.free_count.store(left, relaxed);
  s.free = first == last ? nullptr : first->next_free;
  s.returned = std::exchange(last->next_free, nullptr);
  return *first;
}

record& shards::take_shared(std::size_t shared) {
  shard& s = made(shared);
  const std::lock_guard hold(s.mutex);
  if (s.returned == nullptr) s.returned = s.add_block();
  return *std::exchange(s.returned, s.returned->next_free);
}

/// The shard with that index, which is made if there is none.
shard& shards::made(std::size_t index) {
  if (shard* const s = all_[index].load(std::memory_order_acquire)) return *s;
  auto fresh = std::make_unique<shard>(static_cast<std::uint32_t>(index), buckets_, begin_);
  fresh->wheel.part = sync::redistributed_at_a_time;
  const std::lock_guard hold(table_mutex_);
  if (shard* const s = all_[index].load(relaxed)) return *s;  // another thread that shares it was faster
  // In this order: who finds the shard may use it at once, and then first() must look there.
  if (index >= end_.load(relaxed)) end_.store(index + 1);
  all_[index].store(fresh.get());
  return *fresh.release();
}

record* shard::add_block() {
  constexpr std::size_t most = std::size_t{1} << 20;  // what a slot has bits for
  const auto gap = gaps != 0 ? std::find(blocks.begin(), blocks.end(), nullptr) : blocks.end();
  const auto b = static_cast<std::size_t>(gap - blocks.begin());
  if (b == most) throw std::bad_alloc();
  auto made = std::make_unique<record_block>();
  record* all = nullptr;
  for (std::size_t i = record_block::size; i-- != 0;) {
    record& r = made->records[i];
    r.slot = record_slot::of(number, b, i);
    r.generation = first_generation;
    r.next_free = std::exchange(all, &r);
  }
  if (gap == blocks.end()) {
    blocks.push_back(std::move(made));
  } else {
    *gap = std::move(made);
    --gaps;
  }
  return all;
}

// How memory is given back.

void shards::shrink_to_fit(const ready_list& pass) noexcept {
  for_each([&](shard& s) {
    shrink(s, pass);
    const std::lock_guard hold(s.mutex);
    for (; !s.blocks.empty() && s.blocks.back() == nullptr; --s.gaps) s.blocks.pop_back();
    s.blocks.shrink_to_fit();
    s.wheel.shrink_to_fit();
    note_key(s);
  });
}

void shards::shrink(shard& s, const ready_list& pass) noexcept {
  record* left = gather(s);
  // Free records of the caller are not listed anew. Who still reads an entry that was popped has the list's lock.
  if (s.listed.load(std::memory_order_acquire) == 0) {
    pass.wait_for_readers();
    left = drop_blocks(s, left);
  }
  if (left == nullptr) return;
  record* last = left;
  while (last->next_free != nullptr) last = last->next_free;
  const std::lock_guard hold(s.mutex);
  last->next_free = std::exchange(s.returned, left);
}

/// Takes the free records that the caller can have: its own, and the returned ones. They leave the wheel.
record* shards::gather(shard& s) noexcept {
  record* all = nullptr;
  std::array<record*, 2> lists{};
  {
    const std::lock_guard hold(s.mutex);
    lists[0] = std::exchange(s.returned, nullptr);
    if (is_own(s)) {
      lists[1] = std::exchange(s.free, nullptr);
      s.free_count.store(0, relaxed);
    }
  }
  for (record* list : lists)
    while (list != nullptr) {
      record& r = *std::exchange(list, list->next_free);
      r.drop_extra();
      const std::lock_guard hold(s.mutex);
      if (r.wheel != nullptr) r.wheel->erase(r);
      r.next_free = std::exchange(all, &r);
    }
  return all;
}

/// Gives back the blocks of which all records are in `free`. Returns the other records.
record* shards::drop_blocks(shard& s, record* free) noexcept {
  std::vector<std::uint8_t> found;  // of each block, how many of its records are in `free`
  try {
    found.resize(block_count(s));
  } catch (const std::bad_alloc&) {
    return free;
  }
  for (const record* r = free; r != nullptr; r = r->next_free) ++found[record_slot::block(r->slot)];
  record* left = nullptr;
  while (free != nullptr) {
    record& r = *std::exchange(free, free->next_free);
    if (found[record_slot::block(r.slot)] != record_block::size) r.next_free = std::exchange(left, &r);
  }
  for (std::size_t b = 0; b != found.size(); ++b)
    if (found[b] == record_block::size) drop_block(s, b);
  return left;
}

/// Gives back a block of free records that are the caller's.
void shards::drop_block(shard& s, std::size_t block) noexcept {
  std::unique_ptr<record_block> dropped;  // destroyed without the lock
  const std::lock_guard hold(s.mutex);
  for (const record& r : s.blocks[block]->records)
    s.first_generation = std::max(s.first_generation, r.generation);
  dropped = std::move(s.blocks[block]);
  ++s.gaps;
}

}  // namespace rondo::detail
