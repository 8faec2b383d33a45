// What a scheduler on virtual time is to do, said as simply as possible: a sorted list, looked through from
// end to end for everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <rondo/firing.hpp>

namespace rondo::test {

/// Counts everything in ticks and nanoseconds from its own start, which is 0.
class model {
 public:
  using ns = std::int64_t;
  static constexpr ns never = std::numeric_limits<ns>::max();

  explicit model(ns tick) : tick_(tick) {}

  struct run {
    std::size_t timer;
    ns due, lateness;
    std::uint64_t number, missed;
  };

  ns now() const { return now_; }
  std::size_t pending() const {
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](auto& t) { return t.live; }));
  }
  bool pending(std::size_t which) const { return all_[which].live; }

  /// When there is work next, never if there is none.
  ns next_due() const {
    const auto first = earliest([](const timer&) { return true; });
    return first ? all_[*first].tick * tick_ : never;
  }

  std::size_t schedule(ns due, ns period) {
    all_.push_back({});
    all_.back().live = true;
    all_.back().period = period;
    arm(all_.back(), due);
    return all_.size() - 1;
  }

  /// False: it is not pending.
  bool cancel(std::size_t which) {
    const bool was_live = std::exchange(all_[which].live, false);
    all_[which].waiting = false;
    return was_live;
  }

  bool reschedule(std::size_t which, ns due) {
    if (!all_[which].live) return false;
    arm(all_[which], due);
    return true;
  }

  void elapse(ns d) { now_ += d; }

  /// Begins an advance up to `end`; then next_run() says what is to run, until there is nothing more.
  void begin_advance(ns end) {
    end_ = end;
    pass_end_ = 0;
  }
  std::optional<run> next_run() {
    for (;;) {
      const auto in_pass =
          earliest([&](const timer& t) { return t.armed < pass_end_ && t.tick <= pass_tick_; });
      if (in_pass) return start(*in_pass);
      const ns due = next_due();
      if (due == never || due > end_) break;
      now_ = std::max(now_, due);
      pass_end_ = armings_;  // what is armed from now on is for the next pass
      pass_tick_ = floor_tick(std::min(now_, end_));
    }
    now_ = std::max(now_, end_);
    return std::nullopt;
  }

 private:
  struct timer {
    bool live = false, waiting = false;
    ns due = 0, period = 0, tick = 0;
    std::uint64_t armed = 0;  // when, in the order of calls
    std::uint64_t runs = 0;
  };

  ns floor_tick(ns t) const { return t / tick_ - (t % tick_ < 0 ? 1 : 0); }

  void arm(timer& t, ns due) {
    t.due = due;
    t.waiting = due != never;
    t.armed = armings_++;
    if (!t.waiting) return;
    t.tick = floor_tick(due) + (due % tick_ == 0 ? 0 : 1);
    if (due <= now_) t.tick = std::min(t.tick, floor_tick(now_));
  }

  template <class Counts>
  std::optional<std::size_t> earliest(Counts&& counts) const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i != all_.size(); ++i) {
      if (!all_[i].waiting || !counts(all_[i])) continue;
      if (!first || std::tie(all_[i].tick, all_[i].armed) < std::tie(all_[*first].tick, all_[*first].armed))
        first = i;
    }
    return first;
  }

  run start(std::size_t i) {
    timer& t = all_[i];
    run r{i, t.due, std::max<ns>(now_ - t.due, 0), ++t.runs, 0};
    t.waiting = false;
    if (t.period == 0) {
      t.live = false;
      return r;
    }
    r.missed = static_cast<std::uint64_t>(r.lateness / t.period);
    arm(t, t.due + static_cast<ns>(r.missed + 1) * t.period);
    return r;
  }

  const ns tick_;
  ns now_ = 0, end_ = 0, pass_tick_ = 0;
  std::uint64_t armings_ = 0, pass_end_ = 0;
  std::vector<timer> all_;
};

}  // namespace rondo::test
