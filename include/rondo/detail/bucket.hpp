// One place of the wheel and the nodes of all rounds that live there.
#pragma once

#include <optional>
#include <string>

#include <rondo/detail/later_rounds.hpp>
#include <rondo/detail/node_array.hpp>
#include <rondo/export.hpp>

namespace rondo::detail {

/// The next round has an array of its own, so that setting or cancelling a timer of a short span touches the
/// node, one slot of that array and the one cache line of the bucket; with a later round, one line more.
/// That the bucket fits into the line, lock included, is why `round_shift` is an argument everywhere: a tick's
/// round is `tick >> round_shift`.
class RONDO_EXPORT bucket {
 public:
  /// Whether there is a next round at hand. False does not mean that the bucket is empty: see
  /// bring_up_next().
  bool has_next() const noexcept { return !next_.empty(); }

  bool empty() const noexcept { return next_.empty() && later_.empty(); }

  /// The tick of the next round. Precondition: has_next().
  tick_number next_due() const noexcept { return next_due_; }

  /// Adds `n` if it belongs to the next round and needs no memory; otherwise does nothing and returns false.
  bool add_to_next(node& n, tick_number due) noexcept {
    if (next_.empty() || due != next_due_ || !next_.has_room()) [[unlikely]]
      return false;
    n.due = due;
    next_.push_back(n);
    return true;
  }

  /// The same for a later round.
  bool add_to_later(node& n, tick_number due, int round_shift) noexcept {
    return (next_.empty() || due > next_due_) && later_.add_at_once(n, due, round_shift);
  }

  enum class place { next_round, later_round };

  /// Makes room for a node with this due tick and says where. Strong guarantee.
  place make_room(tick_number due, int round_shift);

  /// Precondition: room was made there for `due`, and nothing else added since.
  void add(node& n, tick_number due, place, int round_shift) noexcept;

  /// Precondition: `n` is here.
  void erase(const node& n, int round_shift) noexcept {
    if (!next_.empty() && n.due == next_due_)
      next_.erase(n);
    else
      later_.erase(n, round_shift);
  }

  /// Sees to it that has_next() is true unless the bucket is empty. False: that is not done yet, it wants to be
  /// called again. Strong guarantee.
  bool bring_up_next(int round_shift) {
    if (!next_.empty() || later_.empty()) return true;
    const std::optional<tick_number> due = later_.take_next(next_, round_shift);
    if (due) next_due_ = *due;
    return due.has_value();
  }

  /// Precondition: has_next().
  node& take_first() noexcept { return next_.pop_front(); }

  /// Gives back the memory of a next round that has been taken, if it is much.
  void taken() noexcept {
    if (next_.empty()) next_.clear();
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    next_.for_each(visit);
    later_.for_each(visit);
  }

  /// See detail/checks.hpp. O(nodes).
  std::string fault(int round_shift) const;

 private:
  node_array next_;
  tick_number next_due_ = 0;
  [[no_unique_address]] later_rounds later_;  // whose tail is the lock's place
};

}  // namespace rondo::detail
