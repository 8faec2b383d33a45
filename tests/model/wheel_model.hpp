// The specification of a wheel, in the form of the simplest code that meets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <rondo/detail/ticks.hpp>

namespace model {

using rondo::tick_number;
using node_id = std::size_t;

/// All nodes, sorted by due tick and then by the order of scheduling. There is nothing more to the specification.
class wheel_model {
 public:
  explicit wheel_model(tick_number now) : now_(now) {}

  void schedule(node_id id, tick_number due) {
    cancel(id);
    const entry added{due, ++scheduled_so_far_, id};
    queue_.insert(added);
    entries_.emplace(id, added);
  }

  bool cancel(node_id id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return false;
    queue_.erase(found->second);
    entries_.erase(found);
    return true;
  }

  /// Takes out the next node that advance(to) must fire; or `wanted`, if that is due at the same tick.
  std::optional<node_id> fire_next(tick_number to, std::optional<node_id> wanted = {}) {
    if (queue_.empty() || queue_.begin()->due > to) return std::nullopt;
    entry first = *queue_.begin();
    if (wanted && due(*wanted) == first.due) first.id = *wanted;
    cancel(first.id);
    if (now_ < first.due) now_ = first.due;
    return first.id;
  }

  void end_of_advance(tick_number to) { now_ = to; }

  std::optional<tick_number> next_due() const {
    if (queue_.empty()) return std::nullopt;
    return queue_.begin()->due;
  }

  std::optional<tick_number> due(node_id id) const {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return std::nullopt;
    return found->second.due;
  }

  tick_number now() const { return now_; }
  std::size_t size() const { return queue_.size(); }

 private:
  struct entry {
    tick_number due;
    std::uint64_t order;
    node_id id;
    bool operator<(const entry& other) const {
      return std::tie(due, order) < std::tie(other.due, other.order);
    }
  };

  std::set<entry> queue_;
  std::map<node_id, entry> entries_;
  tick_number now_;
  std::uint64_t scheduled_so_far_ = 0;
};

}  // namespace model
