#include <rondo/detail/far_lists.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace rondo::detail {

void far_lists::make_room(tick_number due) {
  if (lists.empty()) lists.resize(list_count);
  if (is_in_rest(due))
    rest.make_room(pool_);
  else
    make_room_in_list(due);
}

std::size_t far_lists::make_room_in_list(tick_number due) {
  if (block_of(due) < base) {
    // The new base differs from the old one in a digit. All lists of the levels below that digit become one list,
    // because that is the highest digit in which their blocks differ from the new base. Other lists stay as they are.
    const std::size_t level = index_of(due) / digits;
    const std::size_t target = level * digits + (base >> level * digit_bits) % digits;
    while (first < level * digits) {
      lists[target].append(lists[first], pool_);
      unmark(first);
      mark(target);
    }
    base = block_of(due);
  }
  const std::size_t index = index_of(due);
  lists[index].make_room(pool_);
  mark(index);
  return index;
}

void far_lists::add(node& n, tick_number due) noexcept {
  if (!is_in_rest(due)) return add_to_list(index_of(due), n, due);
  rest.push_at_once(n);
  pool_.note_earliest(n.position / chunk_pool::chunk_slots, due);
}

void far_lists::unmark(std::size_t index) noexcept {
  marks_[index / 64] &= ~(std::uint64_t{1} << index % 64);
  first = marked_at_or_after(0);
}

std::size_t far_lists::marked_at_or_after(std::size_t index) const noexcept {
  for (std::size_t i = index / 64; i != marks_.size(); ++i) {
    const std::uint64_t marks = i == index / 64 ? marks_[i] >> index % 64 << index % 64 : marks_[i];
    if (marks != 0) return i * 64 + static_cast<std::size_t>(std::countr_zero(marks));
  }
  return list_count;
}

tick_number far_lists::begin_of_list(std::size_t index) const noexcept {
  const std::size_t shift = index / digits * digit_bits;
  const block higher_digits = base >> shift >> digit_bits << digit_bits;
  const block begin = (higher_digits | index % digits) << shift;
  return static_cast<tick_number>((begin << block_shift_) ^ sign);
}

void far_lists::move_base(tick_number t) noexcept {
  if (rest.first == 0) {  // an empty range
    rest_first = std::numeric_limits<tick_number>::max();
    rest_last = std::numeric_limits<tick_number>::min();
  }
  const auto block_shift = static_cast<std::size_t>(block_shift_);
  chain reached;
  while (first != list_count) {
    const tick_number begin = begin_of_list(first);
    if (begin > t) break;
    rest_first = std::min(rest_first, begin);
    const auto others = (std::uint64_t{1} << (first / digits * digit_bits + block_shift)) - 1;
    rest_last = std::max(rest_last, begin + static_cast<tick_number>(others));
    reached.append(lists[first], pool_);
    unmark(first);
  }
  base = (static_cast<std::uint64_t>(t) ^ sign) >> block_shift_;
  if (reached.first == 0 && rest.first == 0) return;
  // Nodes that were redistributed to these lists come before those that were not yet.
  reached.append(rest, pool_);
  rest = reached;
  if (rest.scheduled_front(pool_) == nullptr) return rest.release(pool_);
  // Ticks up to the base have no list: new nodes of the base block join those not yet redistributed.
  const tick_number begin = t >> block_shift << block_shift;
  rest_first = std::min(rest_first, begin);
  rest_last = std::max(rest_last, begin + static_cast<tick_number>((std::uint64_t{1} << block_shift) - 1));
}

std::optional<far_lists::key> far_lists::earliest(tick_number known) noexcept {
  if (rest.first != 0 && rest.scheduled_front(pool_) == nullptr) rest.release(pool_);
  while (first != list_count && lists[first].scheduled_front(pool_) == nullptr) {
    lists[first].release(pool_);
    unmark(first);
  }
  const bool has_list = first != list_count;
  if (!has_list && rest.first == 0) return std::nullopt;
  constexpr tick_number last_tick = std::numeric_limits<tick_number>::max();
  if (rest.first != 0 || pool_.chunks[lists[first].first].next != 0) {  // more than one chunk to be searched
    tick_number bound = has_list ? begin_of_list(first) : last_tick;
    if (rest.first != 0) bound = std::min(bound, rest_first);
    if (bound > known) return key{bound, nullptr};
  }
  key result{last_tick, nullptr};
  if (rest.first != 0) result = earliest_of(rest);
  // The first list, and what is to be redistributed, begin with a scheduled node: one is found. Nodes that were moved in place may
  // be due after nodes of later lists.
  for (std::size_t i = first; i != list_count && begin_of_list(i) <= result.due;
       i = marked_at_or_after(i + 1))
    if (const key of_list = earliest_of(lists[i]); of_list.due < result.due || result.at_it == nullptr)
      result = of_list;
  return result;
}

/// Each chunk keeps a bound that none of its nodes precedes: the tick of its earliest node, unless that node was
/// erased, cancelled or moved in place. The chunk with the earliest bound is searched. If its bound proves too early, all
/// chunks whose bounds are earlier than the tick found are searched, too. Cancelled nodes are dropped, so that one of them
/// cannot be scheduled again in its place, before the tick found.
far_lists::key far_lists::earliest_of(const chain& list) noexcept {
  chunk_pool::chunk best = list.first;
  for (chunk_pool::chunk c = list.first; c != 0; c = pool_.chunks[c].next)
    if (pool_.chunks[c].earliest < pool_.chunks[best].earliest) best = c;
  const tick_number bound = pool_.chunks[best].earliest;
  bool has_erased = false;
  key earliest{std::numeric_limits<tick_number>::max(), nullptr};
  const auto is_earlier = [&](tick_number t) { return earliest.at_it == nullptr || t < earliest.due; };
  chunk_pool::chunk following = list.first;  // after the best chunk come all of them
  for (chunk_pool::chunk c = best; c != 0 && is_earlier(bound);
       c = following, following = pool_.chunks[following].next) {
    if (!is_earlier(pool_.chunks[c].earliest)) continue;
    tick_number found = std::numeric_limits<tick_number>::max();
    const std::span<node*> slots = list.slots(c, pool_);
    for (std::size_t i = 0; i != slots.size(); ++i) {
      __builtin_prefetch(slots[std::min(i + chunk_pool::prefetch_distance, slots.size() - 1)]);
      if (slots[i] == nullptr) continue;
      if (pool_.erase_if_cancelled(slots[i], c)) {
        has_erased = true;
        continue;
      }
      found = std::min<tick_number>(found, slots[i]->due);
      if (is_earlier(found)) earliest = {found, slots[i]};
    }
    pool_.chunks[c].earliest = found;
  }
  if (has_erased)
    for (chunk_pool::chunk c = list.first; c != 0; c = pool_.chunks[c].next)
      if (pool_.holes[c] >= chunk_pool::merge_threshold) c = pool_.merge_with_neighbours(c);
  return earliest;
}

void far_lists::shrink_to_fit(bool keeps_lists) noexcept {
  if (rest.first != 0 && rest.scheduled_front(pool_) == nullptr) rest.release(pool_);
  for (std::size_t i = first; i < lists.size(); ++i) {
    if (lists[i].first == 0 || lists[i].scheduled_front(pool_) != nullptr) continue;
    lists[i].release(pool_);
    unmark(i);
  }
  if (surely_empty() && !keeps_lists) lists = std::vector<chain>();
}

/// `is_here(tick)` says whether a node due at that tick belongs to the list; `begin` is the list's first tick. Nodes that
/// may be moved in place may be due later.
template <class IsHere>
std::string far_lists::fault_of(const chain& list, tick_number begin, const IsHere& is_here) const {
  std::string wrong = list.fault(pool_);
  list.for_each(pool_, [&](const node& n) {
    const chunk_pool::chunk c = n.position / chunk_pool::chunk_slots;
    const bool is_in_place = is_here(n.due) || (!n.is_near() && n.due >= begin);
    if (wrong.empty() && (!is_in_place || n.due < pool_.chunks[c].earliest))
      wrong = "a node due at tick " + std::to_string(n.due) + " is not in its place";
  });
  return wrong;
}

std::string far_lists::fault() const {
  std::size_t first_marked = list_count;
  for (std::size_t i = lists.size(); i-- != 0;) {
    const bool is_marked = (marks_[i / 64] >> i % 64 & 1U) != 0;
    if (is_marked) first_marked = i;
    const auto is_here = [&](tick_number due) { return block_of(due) >= base && index_of(due) == i; };
    std::string wrong = fault_of(lists[i], begin_of_list(i), is_here);
    if (is_marked != (lists[i].first != 0))
      wrong = is_marked ? "marked without chunks" : "chunks, but not marked";
    if (!wrong.empty())
      return "far list " + std::to_string(i / digits) + "." + std::to_string(i % digits) + ": " + wrong;
  }
  if (first != first_marked) return "the first far list is not the first one with chunks";
  const std::string wrong = fault_of(rest, rest_first, [&](tick_number due) { return is_in_rest(due); });
  return wrong.empty() ? "" : "far nodes being redistributed: " + wrong;
}

}  // namespace rondo::detail
