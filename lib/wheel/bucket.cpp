#include <rondo/detail/bucket.hpp>

namespace rondo::detail {
namespace {

struct locked_bucket : bucket {
  int lock;
};
static_assert(sizeof(locked_bucket) <= 64);  // one cache line

}  // namespace

bucket::place bucket::make_room(tick_number due, int round_shift) {
  if (next_.empty() ? !later_.empty() : due > next_due_) {
    later_.make_room(due, round_shift);
    return place::later_round;
  }
  if (!next_.empty() && due < next_due_) later_.put_back(next_, next_due_, round_shift);
  next_.make_room();
  return place::next_round;
}

void bucket::add(node& n, tick_number due, place where, int round_shift) noexcept {
  n.due = due;
  if (where == place::next_round) {
    next_due_ = due;
    next_.push_back(n);
  } else {
    later_.add(n, round_shift);
  }
}

std::string bucket::fault(int round_shift) const {
  std::string wrong = next_.fault();
  next_.for_each([&](const node& n) {
    if (wrong.empty() && n.due != next_due_)
      wrong = "its next round is tick " + std::to_string(next_due_) + ", and holds a node due at " +
              std::to_string(n.due);
  });
  if (!wrong.empty() || later_.empty()) return wrong;
  wrong = later_.fault(round_shift);
  later_.for_each([&](const node& n) {
    if (wrong.empty() && has_next() && n.due <= next_due_)
      wrong = "its next round is tick " + std::to_string(next_due_) +
              ", and a later one holds a node due at " + std::to_string(n.due);
  });
  return wrong;
}

}  // namespace rondo::detail
