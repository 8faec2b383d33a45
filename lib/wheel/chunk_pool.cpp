#include <rondo/detail/chunk_pool.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <utility>

namespace rondo::detail {
namespace {

constexpr std::align_val_t segment_alignment{chunk_pool::chunk_slots * sizeof(void*)};
constexpr std::uint32_t all_free = ~std::uint32_t{0};
// With more, slot numbers would not fit into 32 bits.
constexpr std::uint32_t most_segments = std::uint32_t{1} << 21;
constexpr std::uint32_t first_numbers = 8;

}  // namespace

chunk_pool::~chunk_pool() {
  for (std::uint32_t s = 0; s != numbers_; ++s) operator delete(slots_[s], segment_alignment);
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
  clear(c, 0, used);
  s.free |= std::uint32_t{1} << c % segment_chunks;
  if (s.free != all_free) return;
  if (spare_ == 0)
    spare_ = number;
  else
    release(number);
}

void chunk_pool::add_segment() {
  if (unused_ == 0) set_numbers(std::max(first_numbers, numbers_ * 2));
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

/// Resizes the arrays. Strong guarantee: all are allocated before anything changes. Precondition: no segment has a
/// number beyond the new size.
void chunk_pool::set_numbers(std::uint32_t count) {
  if (count > most_segments) throw std::bad_alloc();
  const std::uint32_t kept = std::min(numbers_, count);
  owned_array<node**> slots(count);
  owned_array<segment> segments(count);
  owned_array<chunk_info> chunks(std::size_t{count} * segment_chunks);
  owned_array<std::uint8_t> holes(std::size_t{count} * segment_chunks);
  std::fill_n(std::copy_n(slots_.get(), kept, slots.get()), count - kept, nullptr);
  std::copy_n(segments_.get(), kept, segments.get());
  std::copy_n(chunks_.get(), std::size_t{kept} * segment_chunks, chunks.get());
  std::copy_n(holes_.get(), std::size_t{kept} * segment_chunks, holes.get());
  slots_ = std::move(slots);
  segments_ = std::move(segments);
  chunks_ = std::move(chunks);
  holes_ = std::move(holes);
  numbers_ = count;
  unused_ = 0;
  for (std::uint32_t s = count; s-- > 1;) {
    if (slots_[s] != nullptr) continue;
    segments_[s].next = unused_;
    unused_ = s;
  }
}

void chunk_pool::shrink_to_fit() noexcept {
  if (spare_ != 0) release(std::exchange(spare_, 0));
  std::uint32_t needed = numbers_;
  while (needed != 0 && slots_[needed - 1] == nullptr) --needed;
  if (needed == 0) {
    slots_ = {};
    segments_ = {};
    chunks_ = {};
    holes_ = {};
    numbers_ = unused_ = 0;
    return;
  }
  needed = std::max(first_numbers, std::bit_ceil(needed));
  if (needed >= numbers_) return;
  try {
    set_numbers(needed);
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
  std::uint32_t nodes = nodes_in_inner(c);
  const auto fits = [&](chunk other) {
    return is_inner(other) && nodes + nodes_in_inner(other) <= chunk_nodes;
  };
  for (; fits(next(last)); last = next(last)) nodes += nodes_in_inner(next(last));
  for (; fits(chunks_[first].previous); first = chunks_[first].previous)
    nodes += nodes_in_inner(chunks_[first].previous);
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
  clear(c, nodes);
  holes_[c] = static_cast<std::uint8_t>(chunk_nodes - nodes);
}

std::uint32_t chunk_pool::compact(chunk c) noexcept {
  const std::uint32_t nodes = move_nodes(c, c, 0);
  clear(c, nodes);
  holes_[c] = 0;
  return nodes;
}

void chunk_pool::clear(chunk c, std::size_t from, std::size_t to) noexcept {
  std::fill(slots(c) + from, slots(c) + to, nullptr);
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
  for (std::uint32_t s = 0; s != numbers_; ++s)
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
  for (std::uint32_t s = 0; s != numbers_; ++s) {
    if (slots_[s] == nullptr) continue;
    listed -= segments_[s].free != 0 ? 1U : 0U;
    if (segments_[s].free != all_free) continue;
    ++empty;
    if (spare_ != s) return "an empty segment is not the spare one";
  }
  if (listed != 0) return "the list of segments with free chunks is not complete";
  return empty == (spare_ != 0 ? 1U : 0U) ? "" : "the spare segment is not empty";
}

}  // namespace rondo::detail
