#include <rondo/detail/chain.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rondo::detail {
namespace {

constexpr std::uint32_t prefetch_distance = chunk_pool::prefetch_distance;
constexpr std::uint32_t last_group = chunk_pool::chunk_slots - prefetch_distance;  // its index in a chunk

void prefetch_nodes(node* const* slots) noexcept {
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i != prefetch_distance; ++i) __builtin_prefetch(slots[i], 1);
}

}  // namespace

/// Gives back the first chunk, which is used up, and goes to the next one. Returns false if it is the last chunk, which
/// stays until release().
bool chain::enter_next_chunk(chunk_pool& pool) noexcept {
  const chunk_pool::chunk following = pool.next(first_);
  if (following == 0) return false;
  pool.give_back(first_);
  pool.unlink_previous(following);
  first_ = following;
  begin_ = pool.slots(following);
  if (const chunk_pool::chunk after_it = pool.next(following); after_it != 0) pool.prefetch_slots(after_it);
  return true;
}

/// Nodes lie anywhere in memory, so prefetching the next few hides most of their cache misses. Never reads beyond the
/// chunk, because the slots after it are in no cache.
void chain::next_group(chunk_pool& pool) noexcept {
  const std::size_t index = chunk_pool::index_in_chunk(begin_);
  if (index != 0 && index != last_group) [[likely]]
    prefetch_nodes(begin_ + prefetch_distance);
  else
    near_chunk_end(pool);
}

[[gnu::noinline]] void chain::near_chunk_end(chunk_pool& pool) noexcept {
  if (chunk_pool::index_in_chunk(begin_) == 0) {
    if (enter_next_chunk(pool)) prefetch_nodes(begin_ - 1 + prefetch_distance);
  } else if (const chunk_pool::chunk following = pool.next(first_); following != 0) {
    pool.prefetch_next(following);
    prefetch_nodes(pool.slots(following));
  }
}

void chain::prefetch_first(const chunk_pool& pool) const noexcept {
  const auto nodes =
      std::min<std::ptrdiff_t>(end_of(first_, pool) - begin_, 2 * std::ptrdiff_t{prefetch_distance});
  for (std::ptrdiff_t i = 0; i != nodes; ++i) __builtin_prefetch(begin_[i], 1);
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
  if (has_chunks()) pool.give_back(first_, static_cast<std::size_t>(end_ - pool.slots(first_)));
  *this = {};
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
