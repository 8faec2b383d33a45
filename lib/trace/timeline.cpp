#include "trace/timeline.hpp"

#include <algorithm>

namespace rondo::detail {
namespace {

std::uint64_t length(time_point from, time_point to) noexcept {
  return static_cast<std::uint64_t>(to.time_since_epoch().count()) -
         static_cast<std::uint64_t>(from.time_since_epoch().count());
}

}  // namespace

void tally::change(std::size_t timer, duration by) {
  if (timer >= times_.size()) times_.resize(timer + 1);
  duration& time = times_[timer];
  order_.erase({time, timer});
  time += by;
  if (time != duration::zero()) order_.insert({time, timer});
}

std::pair<std::size_t, duration> tally::longest() const noexcept {
  if (order_.empty()) return {nobody, duration::zero()};
  return {order_.rbegin()->second, order_.rbegin()->first};
}

void timeline::add(const segment& s) {
  if (s.from >= s.to) return;
  if (before_.empty()) before_.emplace_back();
  sums all = before_.back();
  all[static_cast<std::size_t>(s.what)] += length(s.from, s.to);
  before_.push_back(all);
  segments_.push_back(s);
}

void timeline::add(const timeline& from, time_point begin, time_point end) {
  for (std::size_t i = from.first_after(begin); i != from.segments_.size(); ++i) {
    segment s = from.segments_[i];
    if (s.from >= end) return;
    s.from = std::max(s.from, begin);
    s.to = std::min(s.to, end);
    add(s);
  }
}

/// The first segment that ends after `t`.
std::size_t timeline::first_after(time_point t) const noexcept {
  const auto at =
      std::partition_point(segments_.begin(), segments_.end(), [t](const segment& s) { return s.to <= t; });
  return static_cast<std::size_t>(at - segments_.begin());
}

timeline::shares timeline::between(time_point begin, time_point end) {
  const std::size_t first = first_after(begin);
  const auto at = std::partition_point(segments_.begin(), segments_.end(),
                                       [end](const segment& s) { return s.from < end; });
  const auto last = static_cast<std::size_t>(at - segments_.begin());
  if (begin >= end || first >= last) return {};
  move_tally(first, last);
  sums spent = before_[last];
  for (std::size_t i = 0; i != spent.size(); ++i) spent[i] -= before_[first][i];
  // Of the first and the last segment, only a part may count.
  const auto leave_out = [&](const segment& s, time_point from, time_point to, int sign) {
    if (from >= to) return;
    const std::uint64_t outside = length(from, to);
    if (sign < 0) spent[static_cast<std::size_t>(s.what)] -= outside;
    if (s.what == doing::task) tally_.change(s.timer, sign * duration(static_cast<duration::rep>(outside)));
  };
  const segment& head = segments_[first];
  const segment& tail = segments_[last - 1];
  leave_out(head, head.from, begin, -1);
  leave_out(tail, end, tail.to, -1);
  const auto [longest, longest_time] = tally_.longest();
  leave_out(head, head.from, begin, 1);
  leave_out(tail, end, tail.to, 1);
  const auto of = [&](doing what) {
    return duration(static_cast<duration::rep>(spent[static_cast<std::size_t>(what)]));
  };
  return {of(doing::task), of(doing::hand_over), of(doing::pass), longest, longest_time};
}

void timeline::move_tally(std::size_t first, std::size_t last) {
  if (first >= last_ || last <= first_) {  // nothing in common
    while (first_ != last_) count(first_++, -1);
    first_ = last_ = first;
  }
  while (first_ > first) count(--first_, 1);
  while (last_ < last) count(last_++, 1);
  while (first_ < first) count(first_++, -1);
  while (last_ > last) count(--last_, -1);
}

void timeline::count(std::size_t which, int sign) {
  const segment& s = segments_[which];
  if (s.what != doing::task) return;
  tally_.change(s.timer, sign * duration(static_cast<duration::rep>(length(s.from, s.to))));
}

}  // namespace rondo::detail
