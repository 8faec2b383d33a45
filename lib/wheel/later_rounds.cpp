#include <rondo/detail/later_rounds.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace rondo::detail {
namespace {

// No more nodes than that are not worth being dealt out.
constexpr std::uint32_t few = 8;

struct ticks_between {
  tick_number earliest = std::numeric_limits<tick_number>::max();
  tick_number latest = std::numeric_limits<tick_number>::min();
};

ticks_between ticks_of(const node_array& nodes) noexcept {
  ticks_between ticks;
  nodes.for_each([&](const node& n) {
    ticks.earliest = std::min(ticks.earliest, n.due);
    ticks.latest = std::max(ticks.latest, n.due);
  });
  return ticks;
}

}  // namespace

void later_rounds::make_level(std::size_t level) {
  if (level < level_count_) return;
  auto levels = std::make_unique<node_array[]>(level + 1);
  for (std::size_t l = 0; l != level_count_; ++l) levels[l].swap(levels_[l]);
  levels_ = std::move(levels);
  level_count_ = static_cast<std::uint32_t>(level + 1);
}

/// A round earlier than all before it. The levels below the one in which it differs from the old base become
/// that one: seen from the new base, it is the highest bit in which all their rounds differ. Levels above
/// stay as they are.
void later_rounds::lower_base(tick_number due, int round_shift) {
  const std::size_t merged = level_of(due, round_shift);
  make_level(merged);
  std::uint32_t moving = 0;
  for (std::size_t l = 0; l != merged; ++l) moving += levels_[l].size();
  levels_[merged].make_room(moving);
  for (std::size_t l = 0; l != merged; ++l) {
    if ((occupied_ & bit(l)) == 0) continue;
    levels_[l].for_each([&](node& n) { put(n, merged); });
    levels_[l].clear();
    occupied_ &= ~bit(l);
  }
  base_ = due;
}

void later_rounds::make_room(tick_number due, int round_shift) {
  if (empty())
    base_ = due;
  else if (due < base_)
    lower_base(due, round_shift);
  const std::size_t target = level_of(due, round_shift);
  make_level(target);
  levels_[target].make_room();
}

void later_rounds::put_back(node_array& round, tick_number due, int round_shift) {
  make_room(due, round_shift);
  const std::size_t target = level_of(due, round_shift);
  if (levels_[target].empty()) {
    levels_[target].swap(round);
  } else {
    levels_[target].make_room(round.size());
    round.for_each([&](node& n) { levels_[target].push_back(n); });
    round.clear();
  }
  occupied_ |= bit(target);
}

tick_number later_rounds::take_next(node_array& next, int round_shift) {
  const auto lowest = static_cast<std::size_t>(std::countr_zero(occupied_));
  node_array& from = levels_[lowest];
  const auto [earliest, latest] = ticks_of(from);
  if (earliest == latest) {
    next.swap(from);
    from.clear();
    base_ = earliest;
  } else if (from.size() <= few) {
    take_some(from, earliest, next);
  } else {
    deal(lowest, earliest, next, round_shift);
  }
  if (from.empty()) occupied_ &= ~bit(lowest);
  return earliest;
}

/// Moves the nodes due at `due` to `next`, and leaves the others alone.
void later_rounds::take_some(node_array& from, tick_number due, node_array& next) {
  next.make_room(from.size());
  from.for_each([&](node& n) {
    if (n.due != due) return;
    from.erase(n);
    next.push_back(n);
  });
}

/// Moves the nodes due at `base` to `next` and the others of this level, in order, to levels below, which are
/// empty. (Level 0 has no level below: it holds the base and its neighbour, and the neighbour stays.)
void later_rounds::deal(std::size_t level, tick_number base, node_array& next, int round_shift) {
  std::array<std::uint32_t, 65> counts{};  // by level, the last for `next`
  const auto place_of = [&](const node& n) {
    return n.due == base ? counts.size() - 1 : level_between(n.due, base, round_shift);
  };
  node_array& from = levels_[level];
  from.for_each([&](const node& n) { ++counts[place_of(n)]; });
  next.make_room(counts.back());
  for (std::size_t l = 0; l != level; ++l) levels_[l].make_room(counts[l]);

  base_ = base;
  from.for_each([&](node& n) {
    const std::size_t place = place_of(n);
    if (place == level) return;
    from.erase(n);
    if (n.due == base)
      next.push_back(n);
    else
      put(n, place);
  });
}

std::string later_rounds::fault(int round_shift) const {
  for (std::size_t l = 0; l != level_count_; ++l)
    if (const std::string wrong = fault_of(l, round_shift); !wrong.empty())
      return "level " + std::to_string(l) + " of the later rounds: " + wrong;
  return {};
}

std::string later_rounds::fault_of(std::size_t l, int round_shift) const {
  const node_array& own = levels_[l];
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
