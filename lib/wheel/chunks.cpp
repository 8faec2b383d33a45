#include <rondo/detail/chunks.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace rondo::detail {
namespace {

constexpr std::align_val_t segment_alignment{chunk_pool::chunk_slots * sizeof(void*)};
constexpr std::uint32_t all_free = ~std::uint32_t{0};
// With more, slot numbers would not fit into 32 bits.
constexpr std::uint32_t most_segments = std::uint32_t{1} << 21;
constexpr std::uint32_t first_numbers = 8;
constexpr std::uint32_t prefetch_distance = chunk_pool::prefetch_distance;

void prefetch_nodes(node* const* slots) noexcept {
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i != prefetch_distance; ++i) __builtin_prefetch(slots[i], 1);
}

}  // namespace

chunk_pool::~chunk_pool() {
  for (node** const s : slots_) operator delete(s, segment_alignment);
}

chunk_pool::chunk chunk_pool::take() {
  if (open_ == 0) add_segment();
  segment& s = segments_[open_];
  const auto index = static_cast<std::uint32_t>(std::countr_zero(s.free));
  const chunk c = open_ * segment_chunks + index;
  if (spare_ == open_) spare_ = 0;
  s.free &= s.free - 1;
  if (s.free == 0) close(open_);
  chunks[c] = {0, 0, std::numeric_limits<tick_number>::max()};
  holes[c] = 0;
  return c;
}

void chunk_pool::give_back(chunk c, std::size_t used) noexcept {
  const std::uint32_t number = c / segment_chunks;
  segment& s = segments_[number];
  if (s.free == 0) open(number);
  std::fill_n(slots_[number] + std::size_t{c % segment_chunks} * chunk_slots, used, nullptr);
  s.free |= std::uint32_t{1} << c % segment_chunks;
  if (s.free != all_free) return;
  if (spare_ == 0)
    spare_ = number;
  else
    release(number);
}

void chunk_pool::add_segment() {
  if (unused_ == 0) set_numbers(std::max(first_numbers, static_cast<std::uint32_t>(slots_.size()) * 2));
  constexpr std::size_t size = segment_slots + 1;  // move_nodes() may write one slot after the last chunk
  node** const slots = static_cast<node**>(operator new(size * sizeof(void*), segment_alignment));
  for (std::uint32_t i = 0; i != segment_slots; i += 16)  // in pieces: memset() is fastest for a few bytes
    std::fill_n(slots + i, 16, nullptr);
  const std::uint32_t number = unused_;
  unused_ = segments_[number].next;
  slots_[number] = slots;
  segments_[number].free = all_free;
  open(number);
}

/// Resizes the tables. Strong guarantee: all are allocated before anything changes. Precondition: no segment has a
/// number beyond the new size.
void chunk_pool::set_numbers(std::uint32_t count) {
  if (count > most_segments) throw std::bad_alloc();
  const auto resized = [](const auto& table, std::size_t size) {
    std::remove_cvref_t<decltype(table)> copy;
    copy.reserve(size);
    copy.assign(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(std::min(size, table.size())));
    copy.resize(size);
    return copy;
  };
  const std::size_t chunk_count = std::size_t{count} * segment_chunks;
  auto slots = resized(slots_, count);
  auto segments = resized(segments_, count);
  auto resized_chunks = resized(chunks, chunk_count);
  auto resized_holes = resized(holes, chunk_count);
  slots_ = std::move(slots);
  segments_ = std::move(segments);
  chunks = std::move(resized_chunks);
  holes = std::move(resized_holes);
  unused_ = 0;
  for (std::uint32_t s = count; s-- > 1;) {
    if (slots_[s] != nullptr) continue;
    segments_[s].next = unused_;
    unused_ = s;
  }
}

void chunk_pool::shrink_to_fit() noexcept {
  if (spare_ != 0) release(std::exchange(spare_, 0));
  auto needed = static_cast<std::uint32_t>(slots_.size());
  while (needed != 0 && slots_[needed - 1] == nullptr) --needed;
  try {
    if (needed != 0) needed = std::max(first_numbers, std::bit_ceil(needed));
    if (needed < slots_.size()) set_numbers(needed);
  } catch (const std::bad_alloc&) {
    // The tables stay as they are.
  }
}

void chunk_pool::release(std::uint32_t number) noexcept {
  close(number);
  operator delete(slots_[number], segment_alignment);
  slots_[number] = nullptr;
  segments_[number] = {0, 0, unused_};
  unused_ = number;
}

void chunk_pool::open(std::uint32_t number) noexcept {
  segments_[number].previous = 0;
  segments_[number].next = open_;
  if (open_ != 0) segments_[open_].previous = number;
  open_ = number;
}

void chunk_pool::close(std::uint32_t number) noexcept {
  const segment& s = segments_[number];
  if (s.previous != 0)
    segments_[s.previous].next = s.next;
  else
    open_ = s.next;
  if (s.next != 0) segments_[s.next].previous = s.previous;
}

void chunk_pool::sweep(std::size_t most_chunks) noexcept {
  for (std::size_t left = chunks.size(); left != 0 && most_chunks != 0; --left) {
    if (++last_swept_ >= chunks.size()) last_swept_ = 0;  // the tables may have shrunk, too
    const std::uint32_t number = last_swept_ / segment_chunks;
    const bool is_free = (segments_[number].free >> last_swept_ % segment_chunks & 1U) != 0;
    if (slots_[number] == nullptr) {
      last_swept_ |= segment_chunks - 1;
    } else if (!is_free && chunks[last_swept_].previous != 0) {
      if (erase_cancelled(last_swept_)) --last_swept_;
      --most_chunks;
    }
  }
}

/// Erases the cancelled nodes of a chunk. Returns whether it has got more nodes, which may be cancelled, from another.
bool chunk_pool::erase_cancelled(chunk c) noexcept {
  const std::span<node*> all(slots(c), chunk_nodes);
  for (const node* const n : all) __builtin_prefetch(n, 1);
  for (node*& slot : all)
    if (slot != nullptr) erase_if_cancelled(slot, c);
  const std::uint32_t before = holes[c];
  return before >= merge_threshold && merge_with_neighbours(c) == c && holes[c] < before;
}

chunk_pool::chunk chunk_pool::merge_with_neighbours(chunk c) noexcept {
  if (!is_inner(c)) return c;
  chunk first = c;
  chunk last = c;
  std::uint32_t nodes = chunk_nodes - holes[c];
  const auto adds = [&](chunk other) {
    if (!is_inner(other) || nodes + chunk_nodes - holes[other] > chunk_nodes) return false;
    nodes += chunk_nodes - holes[other];
    return true;
  };
  while (adds(chunks[last].next)) last = chunks[last].next;
  while (adds(chunks[first].previous)) first = chunks[first].previous;
  if (first != last) {
    absorb(first, last);
  } else if (nodes == 0) {
    first = chunks[c].previous;
    link(first, chunks[c].next);
    give_back(c);
  }
  return first;
}

/// Moves the nodes of all chunks after `c`, up to `last`, into `c`. Precondition: there is room for them.
void chunk_pool::absorb(chunk c, chunk last) noexcept {
  std::uint32_t nodes = move_nodes(c, c, 0);
  for (chunk absorbed = c; absorbed != last;) {
    absorbed = chunks[c].next;
    nodes = move_nodes(absorbed, c, nodes);
    note_earliest(c, chunks[absorbed].earliest);
    link(c, chunks[absorbed].next);
    give_back(absorbed);
  }
  std::fill(slots(c) + nodes, slots(c) + chunk_nodes, nullptr);
  holes[c] = static_cast<std::uint8_t>(chunk_nodes - nodes);
}

std::uint32_t chunk_pool::compact(chunk c) noexcept {
  const std::uint32_t nodes = move_nodes(c, c, 0);
  std::fill(slots(c) + nodes, slots(c) + chunk_nodes, nullptr);
  holes[c] = 0;
  return nodes;
}

/// Moves the nodes of `from` into the slots of `to` that follow its first `nodes_before` nodes. Returns the number of
/// nodes in `to` afterwards. Clears no slots and counts no holes.
std::uint32_t chunk_pool::move_nodes(chunk from, chunk to, std::uint32_t nodes_before) noexcept {
  node** const source = slots(from);
  node** const target = slots(to);
  // Two loops: in one loop, a branch for each slot would be mispredicted every other time. The first loop may write the
  // slot after the last node, which is unused: the first slot of another chunk, or the last one of the segment.
  std::uint32_t end = nodes_before;
  for (std::uint32_t i = 0; i != chunk_nodes; ++i) {
    node* const occupant = source[i];
    target[end] = occupant;
    end += static_cast<std::uint32_t>(occupant != nullptr);
  }
  for (std::uint32_t i = nodes_before; i != end; ++i) {
    __builtin_prefetch(target[std::min(i + prefetch_distance, end - 1)], 1);
    target[i]->position = to * chunk_slots + 1 + i;
  }
  return end;
}

std::size_t chunk_pool::chunks_in_use() const noexcept {
  std::size_t in_use = 0;
  for (std::uint32_t s = 0; s != slots_.size(); ++s)
    if (slots_[s] != nullptr)
      in_use += segment_chunks - static_cast<std::uint32_t>(std::popcount(segments_[s].free));
  return in_use;
}

std::string chunk_pool::fault() const {
  std::uint32_t listed = 0;
  for (std::uint32_t s = open_; s != 0; s = segments_[s].next) {
    if (slots_[s] == nullptr || segments_[s].free == 0)
      return "a segment without free chunks is in the list of segments that have some";
    ++listed;
  }
  std::uint32_t empty = 0;
  for (std::uint32_t s = 0; s != slots_.size(); ++s) {
    if (slots_[s] == nullptr) continue;
    listed -= segments_[s].free != 0 ? 1U : 0U;
    if (segments_[s].free != all_free) continue;
    ++empty;
    if (spare_ != s) return "an empty segment is not the spare one";
  }
  if (listed != 0) return "the list of segments with free chunks is not complete";
  return empty == (spare_ != 0 ? 1U : 0U) ? "" : "the spare segment is not empty";
}

/// Gives back the first chunk, which is used up, and goes to the next one, if there is one: the last chunk stays until
/// release().
void chain::enter_next_chunk(chunk_pool& pool) noexcept {
  const chunk_pool::chunk following = pool.chunks[first].next;
  if (following == 0) return;
  pool.give_back(first);
  pool.chunks[following].previous = 0;
  first = following;
  begin_ = pool.slots(following);
  prefetch_nodes(begin_ - 1 + prefetch_distance);
  if (const chunk_pool::chunk after_it = pool.chunks[following].next; after_it != 0) {
    constexpr std::uint32_t slots_per_line = 64 / sizeof(void*);  // of a cache line
    node** const slots = pool.slots(after_it);
    for (std::uint32_t i = 0; i < chunk_pool::chunk_nodes; i += slots_per_line) __builtin_prefetch(slots + i);
  }
}

/// Called at the beginning of each group of prefetch_distance slots. Nodes lie anywhere in memory, so prefetching the
/// next few hides most of their cache misses. Never reads beyond the chunk, because the slots after it are in no cache.
void chain::next_group(chunk_pool& pool) noexcept {
  constexpr std::size_t last_group = chunk_pool::chunk_slots - prefetch_distance;  // its first slot
  const std::size_t index =
      reinterpret_cast<std::uintptr_t>(begin_) / sizeof(void*) % chunk_pool::chunk_slots;
  if (index != 0 && index != last_group) [[likely]] {
    prefetch_nodes(begin_ + prefetch_distance);
  } else if (index == 0) {
    enter_next_chunk(pool);
  } else if (const chunk_pool::chunk following = pool.chunks[first].next; following != 0) {
    __builtin_prefetch(&pool.chunks[following]);
    prefetch_nodes(pool.slots(following));
  }
}

void chain::prefetch_first() const noexcept {
  const std::size_t index =
      reinterpret_cast<std::uintptr_t>(begin_) / sizeof(void*) % chunk_pool::chunk_slots;
  const std::size_t left = first == (end_number_ - 1) / chunk_pool::chunk_slots
                               ? static_cast<std::size_t>(end_ - begin_)
                               : chunk_pool::chunk_slots - index;
  const std::size_t nodes = std::min<std::size_t>(left, std::size_t{2} * prefetch_distance);
  for (std::size_t i = 0; i != nodes; ++i) __builtin_prefetch(begin_[i], 1);
}

void chain::extend(chunk_pool& pool) {
  if (begin_ == end_) release(pool);  // so that take() may reuse its chunk
  if (first != 0) {
    const chunk_pool::chunk end = last();
    const bool is_partly_used_up = end == first && begin_ != pool.slots(end);
    if (!is_partly_used_up && pool.holes[end] > chunk_pool::chunk_nodes / 2) {
      const std::uint32_t nodes = pool.compact(end);
      end_ = pool.slots(end) + nodes;
      end_number_ = end * chunk_pool::chunk_slots + 1 + nodes;
      return;
    }
  }
  const chunk_pool::chunk added = pool.take();
  end_ = pool.slots(added);
  if (first != 0) {
    pool.link(last(), added);
  } else {
    first = added;
    begin_ = end_;
  }
  end_number_ = added * chunk_pool::chunk_slots + 1;
}

void chain::release(chunk_pool& pool) noexcept {
  if (first != 0) pool.give_back(first, end_number_ - first * chunk_pool::chunk_slots);
  first = 0;
  end_number_ = 0;
  begin_ = end_ = nullptr;
}

void chain::append(chain& other, chunk_pool& pool) noexcept {
  if (front(pool) == nullptr) release(pool);
  if (first == 0) return std::swap(*this, other);
  if (other.first == 0) return;
  // Where the two meet, slots that were not used yet or are used up become holes.
  const auto count_holes = [&](chunk_pool::chunk c, node** end) {
    pool.holes[c] = static_cast<std::uint8_t>(std::count(pool.slots(c), end, nullptr));
  };
  const chunk_pool::chunk seam = last();
  std::fill(pool.slots(other.first), other.begin_, nullptr);
  count_holes(seam, pool.slots(seam) + chunk_pool::chunk_nodes);
  count_holes(other.first, std::to_address(other.slots(other.first, pool).end()));
  pool.link(seam, other.first);
  end_ = other.end_;
  end_number_ = other.end_number_;
  other = {};
  if (pool.holes[seam] >= chunk_pool::merge_threshold) pool.merge_with_neighbours(seam);
}

std::string chain::fault(const chunk_pool& pool) const {
  for (chunk_pool::chunk c = first; c != 0; c = pool.chunks[c].next) {
    node** const all = pool.slots(c);
    const bool is_last = pool.chunks[c].next == 0;
    if (is_last != (c == last())) return "the last chunk of a chain is not where it ends";
    const auto empty = std::count(all, all + chunk_pool::chunk_nodes, nullptr);
    if (c != first && !is_last && empty != pool.holes[c])
      return "a chunk has " + std::to_string(empty) + " holes, but counts " + std::to_string(pool.holes[c]);
    for (node** slot = c == first ? begin_ : all; slot != all + chunk_pool::chunk_nodes; ++slot) {
      const std::uint32_t number = c * chunk_pool::chunk_slots + 1 + static_cast<std::uint32_t>(slot - all);
      if (*slot != nullptr && (*slot)->position != number)
        return "the node in slot " + std::to_string(number) + " says that it is in slot " +
               std::to_string((*slot)->position);
    }
  }
  return {};
}

}  // namespace rondo::detail
