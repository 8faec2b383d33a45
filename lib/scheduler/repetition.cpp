#include "scheduler/repetition.hpp"

namespace rondo::detail {

repetition::step repetition::point_came(const moment& when, bool busy, bool submits) {
  step s;
  bool at_once = allows_overlap();  // a late run need not wait for the previous one to end
  if (queued_is_due_) {
    s.run = *queued_;
    s.run->run = ++runs_;
    queued_.reset();
    queued_is_due_ = false;
  } else {
    upcoming_.run = runs_ + 1;
    const recurrence::look decision = plan_.look_at(upcoming_, when.now, when.tick);
    if (busy && !allows_overlap()) {
      overlap(decision, s);
    } else {
      begin_upcoming(decision, s);
      at_once |= !submits;
    }
  }
  if (exhausted_ || deferred_ || plan_.counts_from_end()) return s;
  s.is_late = bursts() && upcoming_.due <= when.tick;
  if (s.is_late && !at_once)
    deferred_ = true;  // one after another, each when the previous one ends
  else
    s.wait_for = upcoming_.due;
  return s;
}

void repetition::begin_upcoming(const recurrence::look& decision, step& s) noexcept {
  s.run = decision.run;
  s.missed = decision.missed;
  ++runs_;
  catching_up_ = bursts() && (decision.points > 1 || deferred_);
  deferred_ = false;
  exhausted_ = decision.last;
  if (decision.next) upcoming_ = *decision.next;
}

/// Called for a point that has come while the previous run is in progress: nothing runs for it.
void repetition::overlap(const recurrence::look& decision, step& s) noexcept {
  if (bursts() && (catching_up_ || decision.points > 1)) {  // late runs are not dropped
    deferred_ = true;
    return;
  }
  s.overlapped = decision.points;
  if (plan_.on_overlap() == overlapping_runs::queue_one && !queued_) {
    queued_ = upcoming_;
    --s.overlapped;
    // If it is the last run, the timer has no points after it.
    exhausted_ = plan_.times() && runs_ + 1 >= *plan_.times();
    if (exhausted_) s.overlapped = 0;
  }
  if (exhausted_) return;
  if (decision.next)
    upcoming_ = *decision.next;
  else if (!plan_.counts_from_end())  // otherwise it was moved into the run in progress: that has yet to end
    exhausted_ = true;
}

std::optional<time_point> repetition::run_ended(time_point ended, bool waits) {
  if (queued_) {
    queued_is_due_ = true;
    return queued_->due;
  }
  if (plan_.counts_from_end()) {
    if (waits) return std::nullopt;  // it was moved in the meantime
    upcoming_.run = runs_;           // a dropped point is not a run
    upcoming_ = *plan_.next(upcoming_, ended);
    return upcoming_.due;
  }
  if (deferred_) return upcoming_.due;
  return std::nullopt;
}

std::uint64_t repetition::left() const noexcept {
  const std::uint64_t queued = queued_ ? 1 : 0;
  return exhausted_ ? queued : queued + plan_.left(runs_ + queued, upcoming_.gaps);
}

void repetition::moved_to(time_point due, std::size_t taken_back, const occurrence* oldest) noexcept {
  if (oldest != nullptr)
    upcoming_ = *oldest;
  else if (queued_)
    upcoming_ = *queued_;
  runs_ -= taken_back;
  upcoming_.due = upcoming_.grid = due;
  upcoming_.not_before = time_point::min();
  queued_.reset();
  queued_is_due_ = deferred_ = exhausted_ = catching_up_ = false;
}

}  // namespace rondo::detail
