#include <rondo/detail/far_lists.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace rondo::detail {
namespace {

std::uint64_t distance(tick_number from, tick_number to) noexcept {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

}  // namespace

void far_lists::make_room(tick_number due) {
  if (lists_.empty()) lists_.resize(list_count);
  if (in_redistributed(due))
    redistributed().make_room(pool_);
  else
    make_room_in_list(due);
}

std::size_t far_lists::make_room_in_list(tick_number due) {
  if (block_of(due) < base_) lower_base(due);
  const std::size_t index = index_of(due);
  lists_[index].make_room(pool_);
  return index;
}

void far_lists::add(node& n, tick_number due) noexcept {
  if (!in_redistributed(due)) return add_to_list(index_of(due), n, due);
  redistributed().push_at_once(n);
  pool_.note_earliest(chunk_pool::chunk_of(n.position), due);
}

/// The new base differs from the old one in a digit. All lists of the levels below that digit become one list, because
/// that is the highest digit in which their blocks differ from the new base. Other lists stay as they are.
void far_lists::lower_base(tick_number t) noexcept {
  const std::size_t level = index_of(t) / digits;
  const std::size_t target = level * digits + (base_ >> level * digit_bits) % digits;
  for (std::size_t i = 0; i != level * digits; ++i) {
    if (!marked(i)) continue;
    lists_[target].append(lists_[i], pool_);
    unmark(i);
    mark(target);
  }
  base_ = block_of(t);
}

void far_lists::move_base(tick_number t) noexcept {
  const std::size_t last = index_of(t);
  chain collected;
  while (levels_ != 0 && earliest_list() <= last) {
    const std::size_t i = earliest_list();
    const std::uint64_t ticks = std::uint64_t{1}
                                << (i / digits * digit_bits + static_cast<std::size_t>(block_shift_));
    extend_redistributed(begin_of_list(i), ticks);
    collected.append(lists_[i], pool_);
    unmark(i);
  }
  base_ = block_of(t);
  if (!redistributing()) return;
  // Nodes that were redistributed to these lists come before those that were not yet.
  collected.append(redistributed(), pool_);
  std::swap(redistributed(), collected);
  if (redistributed().front(pool_) == nullptr) return end_redistribution();
  // Ticks up to the base have no list: new nodes of the base block join those not yet redistributed.
  extend_redistributed(begin_of_block(base_), std::uint64_t{1} << block_shift_);
}

void far_lists::extend_redistributed(tick_number begin, std::uint64_t ticks) noexcept {
  if (!redistributing()) {
    redistributed_begin_ = begin;
    redistributed_length_ = ticks;
    return;
  }
  const tick_number first = std::min(begin, redistributed_begin_);
  const std::uint64_t end =
      std::max(distance(first, begin) + ticks, distance(first, redistributed_begin_) + redistributed_length_);
  redistributed_begin_ = first;
  redistributed_length_ = end;
}

void far_lists::end_redistribution() noexcept {
  redistributed().release(pool_);
  redistributed_length_ = 0;
}

void far_lists::nothing_before(tick_number t) noexcept {
  if (!in_redistributed(t)) return;
  redistributed_length_ -= distance(redistributed_begin_, t);
  redistributed_begin_ = t;
}

std::size_t far_lists::earliest_list() const noexcept {
  const auto level = static_cast<std::size_t>(std::countr_zero(levels_));
  return level * digits + static_cast<std::size_t>(std::countr_zero(occupied_[level]));
}

tick_number far_lists::begin_of_list(std::size_t index) const noexcept {
  const std::size_t shift = index / digits * digit_bits;
  const block higher_digits = base_ >> shift >> digit_bits << digit_bits;
  const block first = (higher_digits | index % digits) << shift;
  return begin_of_block(first);
}

tick_number far_lists::lower_bound() const noexcept {
  if (levels_ == 0) return redistributed_begin_;
  if (!redistributing()) return begin_of_list(earliest_list());
  return std::min(redistributed_begin_, begin_of_list(earliest_list()));
}

std::optional<tick_number> far_lists::earliest() noexcept {
  std::optional<tick_number> earliest;
  if (redistributing()) {
    if (redistributed().front(pool_) != nullptr)
      earliest = earliest_of(redistributed());
    else
      end_redistribution();
  }
  while (levels_ != 0) {
    const std::size_t index = earliest_list();
    if (lists_[index].front(pool_) != nullptr) {
      const tick_number in_lists = earliest_of(lists_[index]);
      return earliest ? std::min(*earliest, in_lists) : in_lists;
    }
    lists_[index].release(pool_);
    unmark(index);
  }
  return earliest;
}

/// Each chunk keeps a bound that none of its nodes precedes: the tick of its earliest node, unless that node was
/// erased. The chunk with the earliest bound is searched. If its bound proves too early, all chunks whose bounds are
/// earlier than the tick found are searched, too.
tick_number far_lists::earliest_of(const chain& list) noexcept {
  chunk_pool::chunk first = list.first_chunk();
  for (chunk_pool::chunk c = pool_.next(first); c != 0; c = pool_.next(c))
    if (pool_.earliest(c) < pool_.earliest(first)) first = c;
  const tick_number bound = pool_.earliest(first);
  tick_number earliest = find_earliest(list, first);
  if (earliest == bound) return earliest;
  for (chunk_pool::chunk c = list.first_chunk(); c != 0; c = pool_.next(c))
    if (pool_.earliest(c) < earliest) earliest = std::min(earliest, find_earliest(list, c));
  return earliest;
}

tick_number far_lists::find_earliest(const chain& list, chunk_pool::chunk c) noexcept {
  tick_number earliest = std::numeric_limits<tick_number>::max();
  node** const end = list.end_of(c, pool_);
  for (node** slot = list.begin_of(c, pool_); slot != end; ++slot) {
    __builtin_prefetch(*std::min(slot + chunk_pool::prefetch_distance, end - 1));
    if (*slot != nullptr) earliest = std::min<tick_number>(earliest, (*slot)->due);
  }
  pool_.set_earliest(c, earliest);
  return earliest;
}

chain* far_lists::single_block() noexcept {
  if (levels_ == 0) return nullptr;
  if (redistributing() || earliest_list() >= digits) return nullptr;
  return &lists_[earliest_list()];
}

void far_lists::shrink_to_fit(bool keeps_lists) noexcept {
  if (lists_.empty()) return;
  if (redistributing() && redistributed().front(pool_) == nullptr) end_redistribution();
  for (std::size_t i = 0; i != list_count - 1; ++i) {
    if (!marked(i) || lists_[i].front(pool_) != nullptr) continue;
    lists_[i].release(pool_);
    unmark(i);
  }
  if (surely_empty() && !keeps_lists) lists_ = std::vector<chain>();
}

std::string far_lists::fault() const {
  for (std::size_t i = 0; i != lists_.size(); ++i)
    if (const std::string wrong = fault_of(i); !wrong.empty())
      return "far list " + std::to_string(i / digits) + "." + std::to_string(i % digits) + ": " + wrong;
  return {};
}

std::string far_lists::fault_of(std::size_t index) const {
  const chain& list = lists_[index];
  const bool is_redistributed = &list == &redistributed();
  if (list.has_chunks() != (is_redistributed ? redistributing() : marked(index)))
    return list.has_chunks() ? "chunks, but not marked" : "marked without chunks";
  std::string wrong = list.fault(pool_);
  list.for_each(pool_, [&](const node& n) {
    const bool is_here =
        is_redistributed ? in_redistributed(n.due) : block_of(n.due) >= base_ && index_of(n.due) == index;
    if (wrong.empty() && (!is_here || n.due < pool_.earliest(chunk_pool::chunk_of(n.position))))
      wrong = "a node due at tick " + std::to_string(n.due) + " is not in its place";
  });
  return wrong;
}

}  // namespace rondo::detail
