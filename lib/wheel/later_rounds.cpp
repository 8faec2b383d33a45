#include <rondo/detail/later_rounds.hpp>

#include <algorithm>
#include <array>

namespace rondo::detail {

void later_rounds::make_room(tick_number due) {
  if (empty())
    base_ = due;
  else if (due < base_)
    lower_base(due);
  const std::size_t target = level_of(due);
  if (target >= levels_.size()) levels_.resize(target + 1);
  levels_[target].nodes.make_room();
}

void later_rounds::add(node& n) noexcept {
  const std::size_t target = level_of(n.due);
  levels_[target].nodes.push_back(n);
  include(target, n.due, n.due);
}

void later_rounds::erase(const node& n) noexcept {
  const std::size_t home = level_of(n.due);
  levels_[home].nodes.erase(n);
  if (levels_[home].nodes.empty()) occupied_ &= ~bit(home);
}

void later_rounds::include(std::size_t l, tick_number earliest, tick_number latest) noexcept {
  level& target = levels_[l];
  if ((occupied_ & bit(l)) == 0) {
    target.earliest = earliest;
    target.latest = latest;
    occupied_ |= bit(l);
  } else {
    target.earliest = std::min(target.earliest, earliest);
    target.latest = std::max(target.latest, latest);
  }
}

/// A round earlier than all before it. The levels below the one in which it differs from the old base become
/// that one: seen from the new base, it is the highest bit in which all their rounds differ. Levels above
/// stay as they are.
void later_rounds::lower_base(tick_number due) {
  const std::size_t merged = level_of(due);
  if (merged >= levels_.size()) levels_.resize(merged + 1);
  std::uint32_t moving = 0;
  for (std::size_t l = 0; l != merged; ++l) moving += levels_[l].nodes.size();
  node_array& target = levels_[merged].nodes;
  target.make_room(moving);
  for (std::size_t l = 0; l != merged; ++l) {
    level& from = levels_[l];
    if ((occupied_ & bit(l)) == 0) continue;
    from.nodes.for_each([&](node& n) { target.push_back(n); });
    include(merged, from.earliest, from.latest);
    occupied_ &= ~bit(l);
    from.nodes.clear();
  }
  base_ = due;
}

void later_rounds::put_back(node_array& round, tick_number due) {
  make_room(due);
  const std::size_t target = level_of(due);
  node_array& nodes = levels_[target].nodes;
  if (nodes.empty()) {
    nodes.swap(round);
  } else {
    nodes.make_room(round.size());
    round.for_each([&](node& n) { nodes.push_back(n); });
    round.clear();
  }
  include(target, due, due);
}

tick_number later_rounds::take_next(node_array& next) {
  // A level's lower bound may have been cancelled: then the first deal yields nothing but lower levels.
  for (;;) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(occupied_));
    level& from = levels_[lowest];
    const tick_number earliest = from.earliest;
    if (from.earliest == from.latest) {
      next.swap(from.nodes);
      from.nodes.clear();
      occupied_ &= ~bit(lowest);
      base_ = earliest;
      return earliest;
    }
    deal(lowest, earliest, next);
    if (!next.empty()) return earliest;
  }
}

/// Moves the nodes due at `base` to `next` and the others of this level, in order, to levels below, which are
/// empty. (Level 0 has no level below: it holds the base and its neighbour, and the neighbour stays.)
void later_rounds::deal(std::size_t l, tick_number base, node_array& next) {
  std::array<std::uint32_t, 65> counts{};  // by level, the last for `next`
  const auto place_of = [&](const node& n) {
    return n.due == base ? counts.size() - 1 : level_between(n.due, base);
  };
  level& from = levels_[l];
  from.nodes.for_each([&](const node& n) { ++counts[place_of(n)]; });
  next.make_room(counts.back());
  node_array stay;
  if (l == 0) stay.make_room(counts[0]);
  for (std::size_t i = 0; i != l; ++i) levels_[i].nodes.make_room(counts[i]);

  base_ = base;
  occupied_ &= ~bit(l);
  node_array dealt;
  dealt.swap(from.nodes);
  if (l == 0) from.nodes.swap(stay);
  dealt.for_each([&](node& n) {
    if (n.due == base)
      next.push_back(n);
    else
      add(n);
  });
  if (l != 0) {  // the memory stays with its level
    dealt.clear();
    from.nodes.swap(dealt);
  }
}

std::string later_rounds::fault() const {
  for (std::size_t l = 0; l != levels_.size(); ++l)
    if (const std::string wrong = fault_of(l); !wrong.empty())
      return "level " + std::to_string(l) + " of the later rounds: " + wrong;
  return {};
}

std::string later_rounds::fault_of(std::size_t l) const {
  const level& own = levels_[l];
  const bool occupied = (occupied_ & bit(l)) != 0;
  if (occupied == own.nodes.empty()) return occupied ? "occupied without nodes" : "nodes, but not occupied";
  std::string wrong = own.nodes.fault();
  own.nodes.for_each([&](const node& n) {
    const bool is_home = n.due >= base_ && level_of(n.due) == l;
    if (wrong.empty() && !is_home)
      wrong = "a node due at tick " + std::to_string(n.due) + ", with the base at " + std::to_string(base_);
    if (wrong.empty() && (n.due < own.earliest || n.due > own.latest))
      wrong = "a node due at tick " + std::to_string(n.due) + ", not in " + std::to_string(own.earliest) +
              " … " + std::to_string(own.latest);
  });
  return wrong;
}

}  // namespace rondo::detail
