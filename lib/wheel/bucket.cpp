#include <rondo/detail/bucket.hpp>

namespace rondo::detail {

bucket::place bucket::make_room(tick_number due, int round_shift) {
  const bool only_next = later_ == nullptr || later_->empty();
  if (next_.empty() ? only_next : due == next_due_) {
    next_.make_room();
    return place::next_round;
  }
  if (later_ == nullptr) later_ = std::make_unique<later_rounds>(round_shift);
  // An earlier round than the next one: what was next is so no longer, and bring_up_next() will find the new
  // one.
  if (!next_.empty() && due < next_due_) later_->put_back(next_, next_due_);
  later_->make_room(due);
  return place::later_round;
}

void bucket::add(node& n, tick_number due, place where) noexcept {
  n.due = due;
  if (where == place::next_round) {
    next_due_ = due;
    next_.push_back(n);
  } else {
    later_->add(n);
  }
}

void bucket::bring_up_next_slowly() {
  if (!later_->empty()) next_due_ = later_->take_next(next_);
}

std::string bucket::fault() const {
  std::string wrong = next_.fault();
  next_.for_each([&](const node& n) {
    if (wrong.empty() && n.due != next_due_)
      wrong = "its next round is tick " + std::to_string(next_due_) + ", and holds a node due at " +
              std::to_string(n.due);
  });
  if (!wrong.empty() || later_ == nullptr) return wrong;
  wrong = later_->fault();
  later_->for_each([&](const node& n) {
    if (wrong.empty() && has_next() && n.due <= next_due_)
      wrong = "its next round is tick " + std::to_string(next_due_) +
              ", and a later one holds a node due at " + std::to_string(n.due);
  });
  return wrong;
}

}  // namespace rondo::detail
