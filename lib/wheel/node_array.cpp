#include <rondo/detail/node_array.hpp>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace rondo::detail {
namespace {

// Small arrays grow by leaps, as an allocation costs as much as adding a dozen nodes; large ones double.
constexpr std::uint32_t first_capacity = 32;
constexpr std::uint32_t doubled_capacity = 128;
// 128 KiB: an array that a burst has made larger than that gives its memory back once it is empty.
constexpr std::uint32_t kept_capacity = 16 * 1024;

}  // namespace

void node_array::clear() noexcept {
  begin_ = end_ = holes_ = 0;
  if (capacity_ > kept_capacity) {
    slots_ = {};
    capacity_ = 0;
  }
}

void node_array::swap(node_array& other) noexcept {
  std::swap(slots_, other.slots_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  std::swap(holes_, other.holes_);
  std::swap(capacity_, other.capacity_);
}

void node_array::make_room_slowly(std::uint32_t more) {
  const std::uint64_t needed = std::uint64_t{size()} + more;
  if (needed <= capacity_ / 2) {
    squeeze_into(slots_.get());
    return;
  }
  const std::uint64_t growth = capacity_ < doubled_capacity ? 4 : 2;
  std::uint64_t larger = std::max<std::uint64_t>(first_capacity, size() * growth);
  larger = std::min<std::uint64_t>(std::max(larger, needed), std::numeric_limits<std::uint32_t>::max());
  if (larger < needed) throw std::bad_alloc();
  owned_array<node*> slots(static_cast<std::size_t>(larger));
  squeeze_into(slots.get());
  slots_ = std::move(slots);
  capacity_ = static_cast<std::uint32_t>(larger);
}

void node_array::squeeze_into(node** target) noexcept {
  if (size() == end_ && target != slots_.get()) {  // no hole, nothing spent: positions stay
    std::copy_n(slots_.get(), end_, target);
    return;
  }
  // In two loops, as in the first a branch for each slot would be mispredicted every other time: a third of
  // what cancelling one timer and setting another costs.
  std::uint32_t nodes = 0;
  for (std::uint32_t i = begin_; i != end_; ++i) {
    node* const occupant = slots_[i];
    target[nodes] = occupant;
    nodes += static_cast<std::uint32_t>(occupant != nullptr);
  }
  for (std::uint32_t i = 0; i != nodes; ++i) {
    __builtin_prefetch(target[std::min(i + prefetch_distance, nodes - 1)], 1);
    target[i]->position = i;
  }
  begin_ = holes_ = 0;
  end_ = nodes;
}

std::string node_array::fault() const {
  if (begin_ > end_ || end_ > capacity_) return "an array ends before it begins, or beyond its memory";
  std::uint32_t holes = 0;
  for (std::uint32_t i = begin_; i != end_; ++i) {
    if (slots_[i] == nullptr)
      ++holes;
    else if (slots_[i]->position != i)
      return "the node in slot " + std::to_string(i) + " of an array says that it is in slot " +
             std::to_string(slots_[i]->position);
  }
  if (holes != holes_)
    return "an array has " + std::to_string(holes) + " holes and counts " + std::to_string(holes_);
  return {};
}

}  // namespace rondo::detail
