// A wheel under the explorer, and its invariants.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "scheduler/shards.hpp"

namespace rondo::test {

/// The wheels of two shards, with few buckets, and some timers: the even ones are in the first shard. Only one thread
/// schedules, moves and cancels timer i, and only one thread takes due timers.
template <std::size_t Nodes, std::size_t Buckets = 2, std::size_t Shards = 2>
struct wheel_in_use {
  detail::shards all{Buckets, 0};
  std::array<detail::record*, Nodes> nodes{};
  std::array<int, Nodes> scheduled{}, cancelled{}, taken{};
  std::vector<tick_number> taken_ticks;
  explored_atomic<bool> notified;  // set when the earliest tick has moved earlier

  wheel_in_use() {
    for (std::size_t i = 0; i != Nodes; ++i) {
      detail::sync::number_of_all = i % Shards;
      nodes[i] = &all.take();
    }
    detail::sync::number_of_all = detail::sync::own_shards;
  }

  /// Schedules or moves.
  void schedule(std::size_t i, tick_number due) {
    detail::shard& s = all.of(*nodes[i]);
    const std::lock_guard hold(s.mutex);
    const bool was_inside = nodes[i]->is_scheduled();
    s.wheel.schedule(*nodes[i], due);
    if (all.note_key(s)) notified.store(true);
    const unwatched here;
    scheduled[i] += was_inside ? 0 : 1;
    due_[i] = due;
  }
  /// Schedules a timer that was not scheduled yet in the shard that threads share, which is made if there is none.
  void schedule_in_shared_shard(std::size_t i, tick_number due) {
    nodes[i] = &all.take();
    schedule(i, due);
  }
  void cancel(std::size_t i) {
    detail::shard& s = all.of(*nodes[i]);
    const std::lock_guard hold(s.mutex);
    if (!nodes[i]->is_scheduled()) return;
    s.wheel.cancel(*nodes[i]);
    const unwatched here;
    ++cancelled[i];
    due_[i].reset();
  }
  void take(tick_number to, std::size_t limit = unlimited) {
    all.take_due(
        to, limit, [] { return true; },
        [this, to](detail::record& n, tick_number tick) {
          const unwatched here;
          expect(n.due == tick, "a timer is taken at its tick");
          expect(tick <= to, "a timer is not taken before its tick");
          for (const detail::record* const other : nodes)  // the shard is locked
            expect(!other->is_scheduled() || &all.of(*other) != &all.of(n) || n.due <= other->due,
                   "timers of a shard are taken in the order of ticks");
          taken_ticks.push_back(tick);
          ++taken[number_of(n)];
          due_[number_of(n)].reset();
        });
  }
  /// As another thread would that wants to know.
  void ask() { all.next_due(); }
  /// A driver would now sleep until the next node is due or it is notified.
  void decide_sleep() {
    const auto due = all.next_due();
    const unwatched here;
    sleeping_until_ = due;
    sleeps_ = true;
  }
  void drive(tick_number to) {
    notified.store(false);
    take(to);
    decide_sleep();
  }

  void check() {
    std::array<int, Nodes> inside{};
    all.for_each([&](detail::shard& s) {
      s.wheel.for_each([&](detail::node& n) { ++inside[number_of(static_cast<detail::record&>(n))]; });
    });
    for (std::size_t i = 0; i != Nodes; ++i) {
      expect(cancelled[i] + taken[i] + inside[i] == scheduled[i], "a timer leaves the wheel once");
      expect(nodes[i]->is_scheduled() == (inside[i] == 1), "a timer knows whether it is in the wheel");
    }
    const std::string wrong = all.fault();
    expect(wrong.empty(), wrong.c_str());
    const std::optional<tick_number> due = all.next_due();
    expect(due == earliest(), "next_due() is exact when nothing else is in progress");
    expect(!sleeps_ || notified.load() || !due || (sleeping_until_ && *sleeping_until_ <= *due),
           "a driver that sleeps past the earliest timer is notified");
  }
  /// Takes all remaining timers.
  void take_rest() {
    take(std::numeric_limits<tick_number>::max());
    for (const detail::record* const n : nodes) expect(!n->is_scheduled(), "all timers are taken in the end");
    check();
  }

 private:
  std::size_t number_of(const detail::record& r) const {
    return static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), &r) - nodes.begin());
  }
  std::optional<tick_number> earliest() const {
    std::optional<tick_number> earliest;
    for (const auto& due : due_)
      if (due && (!earliest || *due < *earliest)) earliest = due;
    return earliest;
  }

  std::array<std::optional<tick_number>, Nodes>
      due_{};  // of the timers about which the others have been told
  bool sleeps_ = false;
  std::optional<tick_number> sleeping_until_;
};

/// A scenario in which these threads use a wheel at the same time. `prepare` is called before.
template <class Wheel = wheel_in_use<3>>
std::function<scenario()> on_wheel(std::function<void(Wheel&)> prepare,
                                   std::vector<std::function<void(Wheel&)>> threads) {
  return [=] {
    const auto w = std::make_shared<Wheel>();
    prepare(*w);
    scenario what;
    for (const auto& act : threads) what.threads.push_back({"user", [w, act] { act(*w); }});
    what.check = [w] {
      w->check();
      w->take_rest();
    };
    return what;
  };
}

}  // namespace rondo::test
