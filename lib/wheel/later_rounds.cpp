#include <rondo/detail/later_rounds.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace rondo::detail {
namespace {

// No more nodes than that are not worth being dealt out.
constexpr std::uint32_t few = 8;
// So many are dealt out at a time: some 0.1 ms, as most of them miss the cache.
constexpr std::uint32_t dealt_at_a_time = 4096;

tick_number earliest_of(const node_array& nodes) noexcept {
  tick_number earliest = std::numeric_limits<tick_number>::max();
  nodes.for_each([&](const node& n) { earliest = std::min(earliest, n.due); });
  return earliest;
}

}  // namespace

void later_rounds::make_level(std::size_t l) {
  if (l < level_count_) return;
  owned_array<node_array> arrays(l + 2);
  for (std::size_t i = 0; arrays_.get() != nullptr && i != level_count_ + std::size_t{1}; ++i)
    arrays[i].swap(arrays_[i]);
  arrays_ = std::move(arrays);
  level_count_ = static_cast<std::uint8_t>(l + 1);
}

/// A round earlier than all before it. The levels below the one in which it differs from the old base become
/// that one: seen from the new base, it is the highest bit in which all their rounds differ. Levels above
/// stay as they are.
void later_rounds::lower_base(tick_number due, int round_shift) {
  const std::size_t merged = level_of(due, round_shift);
  make_level(merged);
  std::uint32_t moving = 0;
  for (std::size_t l = 0; l != merged; ++l) moving += level(l).size();
  level(merged).make_room(moving);
  for (std::size_t l = 0; l != merged; ++l) {
    if ((occupied_ & bit(l)) == 0) continue;
    level(l).for_each([&](node& n) { put(n, merged); });
    level(l).clear();
    occupied_ &= ~bit(l);
  }
  base_ = due;
}

void later_rounds::make_room(tick_number due, int round_shift) {
  if (dealing_) return undealt().make_room();
  if (occupied_ == 0)
    base_ = due;
  else if (due < base_)
    lower_base(due, round_shift);
  const std::size_t target = level_of(due, round_shift);
  make_level(target);
  level(target).make_room();
}

void later_rounds::put_back(node_array& round, tick_number due, int round_shift) {
  make_room(due, round_shift);
  const std::size_t target = level_of(due, round_shift);
  if (level(target).empty()) {
    level(target).swap(round);
  } else {
    level(target).make_room(round.size());
    round.for_each([&](node& n) { level(target).push_back(n); });
    round.clear();
  }
  occupied_ |= bit(target);
}

std::optional<tick_number> later_rounds::take_next(node_array& next, int round_shift) {
  std::uint32_t left = dealt_at_a_time;
  for (;;) {
    if (dealing_ && !deal(left, round_shift)) return std::nullopt;
    const auto lowest = static_cast<std::size_t>(std::countr_zero(occupied_));
    node_array& from = level(lowest);
    const tick_number first = from.front().due;
    if (from.all_of([&](const node& n) { return n.due == first; })) {
      next.swap(from);
      from.clear();
      occupied_ &= ~bit(lowest);
      base_ = first;
      return first;
    }
    if (from.size() <= few || lowest == 0) {
      const tick_number earliest = earliest_of(from);
      take_some(lowest, earliest, next);
      return earliest;
    }
    begin_to_deal(lowest, round_shift);
  }
}

/// Moves the nodes due at `due` to `next`, and leaves the others alone.
void later_rounds::take_some(std::size_t l, tick_number due, node_array& next) {
  next.make_room(level(l).size());
  level(l).for_each([&](node& n) {
    if (n.due != due) return;
    level(l).erase(n);
    next.push_back(n);
  });
}

/// The new base is the first round of this level: of those rounds that differ from the old base in this bit,
/// the one whose lower bits are zero. Precondition: the levels below are empty.
void later_rounds::begin_to_deal(std::size_t l, int round_shift) noexcept {
  undealt().swap(level(l));
  occupied_ &= ~bit(l);
  dealing_ = true;
  const auto base = static_cast<std::uint64_t>(base_);
  const int own_bit = round_shift + static_cast<int>(l);
  base_ = static_cast<tick_number>((base >> own_bit ^ 1U) << own_bit);
}

/// Deals out `left` nodes at most, and counts down; true: that was all. Strong guarantee.
bool later_rounds::deal(std::uint32_t& left, int round_shift) {
  for (; dealing_ && left != 0; --left) {
    node& n = undealt().front();
    if (n.due < base_) lower_base(n.due, round_shift);  // it came while the others were being dealt out
    const std::size_t home = level_of(n.due, round_shift);
    make_level(home);
    level(home).make_room();
    undealt().pop_front();
    put(n, home);
    dealing_ = !undealt().empty();
  }
  if (!dealing_) undealt().clear();
  return !dealing_;
}

std::string later_rounds::fault(int round_shift) const {
  if (dealing_ && undealt().empty()) return "the later rounds have nothing left to be dealt out";
  if (dealing_)
    if (const std::string wrong = undealt().fault(); !wrong.empty()) return "still to be dealt out: " + wrong;
  for (std::size_t l = 0; l != level_count_; ++l)
    if (const std::string wrong = fault_of(l, round_shift); !wrong.empty())
      return "level " + std::to_string(l) + " of the later rounds: " + wrong;
  return {};
}

std::string later_rounds::fault_of(std::size_t l, int round_shift) const {
  const node_array& own = level(l);
  const bool occupied = (occupied_ & bit(l)) != 0;
  if (occupied == own.empty()) return occupied ? "occupied without nodes" : "nodes, but not occupied";
  std::string wrong = own.fault();
  own.for_each([&](const node& n) {
    if (wrong.empty() && (n.due < base_ || level_of(n.due, round_shift) != l))
      wrong = "a node due at tick " + std::to_string(n.due) + ", with the base at " + std::to_string(base_);
  });
  return wrong;
}

}  // namespace rondo::detail
