#include <rondo/detail/chunks.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <new>
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
constexpr std::uint32_t last_group = chunk_pool::chunk_slots - prefetch_distance;  // its index in a chunk

void prefetch_nodes(node* const* slots) noexcept {
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i != prefetch_distance; ++i) __builtin_prefetch(slots[i], 1);
}

void prefetch_slots(node* const* slots) noexcept {
  constexpr std::uint32_t slots_per_line = 64 / sizeof(void*);  // of a cache line
  for (std::uint32_t i = 0; i < chunk_pool::chunk_nodes; i += slots_per_line) __builtin_prefetch(slots + i);
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
  chunks_[c] = {0, 0, std::numeric_limits<tick_number>::max()};
  holes_[c] = 0;
  return c;
}

void chunk_pool::give_back(chunk c, std::size_t used) noexcept {
  const std::uint32_t number = c / segment_chunks;
  segment& s = segments_[number];
  if (s.free == 0) open(number);
  std::fill_n(slots(c), used, nullptr);
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
  auto chunks = resized(chunks_, chunk_count);
  auto holes = resized(holes_, chunk_count);
  slots_ = std::move(slots);
  segments_ = std::move(segments);
  chunks_ = std::move(chunks);
  holes_ = std::move(holes);
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

void chunk_pool::count_holes(chunk c, std::uint32_t end_number) noexcept {
  holes_[c] =
      static_cast<std::uint8_t>(std::count(slots(c), slots(c) + (end_number - first_slot(c)), nullptr));
}

/// Merges an inner chunk with as many neighbours as fit into one chunk together with it; frees it if it has no nodes.
/// Does nothing to a chunk that is not an inner one.
void chunk_pool::merge_with_neighbours(chunk c) noexcept {
  if (!is_inner(c)) return;
  chunk first = c;
  chunk last = c;
  std::uint32_t nodes = chunk_nodes - holes_[c];
  const auto adds = [&](chunk other) {
    if (!is_inner(other) || nodes + chunk_nodes - holes_[other] > chunk_nodes) return false;
    nodes += chunk_nodes - holes_[other];
    return true;
  };
  while (adds(next(last))) last = next(last);
  while (adds(chunks_[first].previous)) first = chunks_[first].previous;
  if (first != last) {
    absorb(first, last);
  } else if (nodes == 0) {
    link(chunks_[c].previous, next(c));
    give_back(c);
  }
}

/// Moves the nodes of all chunks after `c`, up to `last`, into `c`. Precondition: there is room for them.
void chunk_pool::absorb(chunk c, chunk last) noexcept {
  std::uint32_t nodes = move_nodes(c, c, 0);
  for (chunk absorbed = c; absorbed != last;) {
    absorbed = next(c);
    nodes = move_nodes(absorbed, c, nodes);
    note_earliest(c, earliest(absorbed));
    link(c, next(absorbed));
    give_back(absorbed);
  }
  std::fill(slots(c) + nodes, slots(c) + chunk_nodes, nullptr);
  holes_[c] = static_cast<std::uint8_t>(chunk_nodes - nodes);
}

std::uint32_t chunk_pool::compact(chunk c) noexcept {
  const std::uint32_t nodes = move_nodes(c, c, 0);
  std::fill(slots(c) + nodes, slots(c) + chunk_nodes, nullptr);
  holes_[c] = 0;
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
    target[i]->position = first_slot(to) + i;
  }
  return end;
}

std::string chunk_pool::fault_of_inner(chunk c) const {
  const auto empty = std::count(slots(c), slots(c) + chunk_nodes, nullptr);
  if (empty == holes_[c]) return {};
  return "a chunk has " + std::to_string(empty) + " holes, but counts " + std::to_string(holes_[c]);
}

std::size_t chunk_pool::chunks() const noexcept {
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

/// Gives back the first chunk, which is used up, and goes to the next one. Returns false if it is the last chunk, which
/// stays until release().
bool chain::enter_next_chunk(chunk_pool& pool) noexcept {
  const chunk_pool::chunk following = pool.next(first_);
  if (following == 0) return false;
  pool.give_back(first_);
  pool.unlink_previous(following);
  first_ = following;
  begin_ = pool.slots(following);
  if (const chunk_pool::chunk after_it = pool.next(following); after_it != 0)
    prefetch_slots(pool.slots(after_it));
  return true;
}

/// Nodes lie anywhere in memory, so prefetching the next few hides most of their cache misses. Never reads beyond the
/// chunk, because the slots after it are in no cache.
void chain::next_group(chunk_pool& pool) noexcept {
  const std::size_t index =
      reinterpret_cast<std::uintptr_t>(begin_) / sizeof(void*) % chunk_pool::chunk_slots;
  if (index != 0 && index != last_group) [[likely]] {
    prefetch_nodes(begin_ + prefetch_distance);
  } else if (index == 0) {  // after the last slot of the chunk
    if (enter_next_chunk(pool)) prefetch_nodes(begin_ - 1 + prefetch_distance);
  } else if (const chunk_pool::chunk following = pool.next(first_); following != 0) {
    pool.prefetch_next(following);
    prefetch_nodes(pool.slots(following));
  }
}

void chain::prefetch_first() const noexcept {
  const bool is_last = first_ == (end_number_ - 1) / chunk_pool::chunk_slots;
  const std::size_t index =
      reinterpret_cast<std::uintptr_t>(begin_) / sizeof(void*) % chunk_pool::chunk_slots;
  const std::size_t left =
      is_last ? static_cast<std::size_t>(end_ - begin_) : chunk_pool::chunk_slots - index;
  const std::size_t nodes = std::min<std::size_t>(left, std::size_t{2} * prefetch_distance);
  for (std::size_t i = 0; i != nodes; ++i) __builtin_prefetch(begin_[i], 1);
}

void chain::make_room_slowly(chunk_pool& pool) {
  if (begin_ == end_) release(pool);  // so that take() may reuse its chunk
  if (has_chunks() && compact_last(pool)) return;
  const chunk_pool::chunk added = pool.take();
  if (has_chunks()) {
    pool.link(last_chunk(), added);
  } else {
    first_ = added;
    begin_ = pool.slots(added);
  }
  end_ = pool.slots(added);
  end_number_ = chunk_pool::first_slot(added);
}

bool chain::compact_last(chunk_pool& pool) noexcept {
  const chunk_pool::chunk last = last_chunk();
  const bool is_partly_used_up = last == first_ && begin_ != pool.slots(last);
  if (is_partly_used_up || !pool.worth_compacting(last)) return false;
  const std::uint32_t nodes = pool.compact(last);
  end_ = pool.slots(last) + nodes;
  end_number_ = chunk_pool::first_slot(last) + nodes;
  return true;
}

void chain::release(chunk_pool& pool) noexcept {
  if (end_number_ != 0) pool.give_back(first_, static_cast<std::size_t>(end_ - pool.slots(first_)));
  begin_ = end_ = nullptr;
  end_number_ = 0;
  first_ = 0;
}

void chain::append(chain& other, chunk_pool& pool) noexcept {
  if (front(pool) == nullptr) release(pool);
  if (!has_chunks()) return std::swap(*this, other);
  if (!other.has_chunks()) return;
  const chunk_pool::chunk last = last_chunk();
  const chunk_pool::chunk others_first = other.first_;
  std::fill(pool.slots(others_first), other.begin_, nullptr);
  const auto end_of = [](chunk_pool::chunk c) { return chunk_pool::first_slot(c) + chunk_pool::chunk_nodes; };
  pool.count_holes(last, end_of(last));
  pool.count_holes(others_first,
                   others_first == other.last_chunk() ? other.end_number_ : end_of(others_first));
  pool.link(last, others_first);
  end_ = other.end_;
  end_number_ = other.end_number_;
  other = {};
  pool.becomes_inner(last);
}

std::string chain::fault(const chunk_pool& pool) const {
  for (chunk_pool::chunk c = first_; c != 0; c = pool.next(c)) {
    std::string wrong;
    const bool is_last = pool.next(c) == 0;
    if (is_last != (c == last_chunk())) return "the last chunk of a chain is not where it ends";
    if (c != first_ && !is_last) wrong = pool.fault_of_inner(c);
    if (!wrong.empty()) return wrong;
    for (node** slot = begin_of(c, pool); slot != pool.slots(c) + chunk_pool::chunk_nodes; ++slot) {
      const std::uint32_t number =
          chunk_pool::first_slot(c) + static_cast<std::uint32_t>(slot - pool.slots(c));
      if (*slot != nullptr && (*slot)->position != number)
        return "the node in slot " + std::to_string(number) + " says that it is in slot " +
               std::to_string((*slot)->position);
    }
  }
  return {};
}

}  // namespace rondo::detail
