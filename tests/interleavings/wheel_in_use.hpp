// A wheel under the explorer, and its invariants.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "scheduler/striped_wheel.hpp"

namespace rondo::test {

struct explored_node : detail::shared_node {
  bool is_inside() const { return detail::node_word{word_.peek()}.is_scheduled(); }
};

/// Two stripes, few buckets, and some nodes. As the wheel requires, only one thread schedules, moves and cancels node
/// i, and only one thread takes due nodes.
template <std::size_t Nodes, std::size_t Buckets = 2>
struct wheel_in_use {
  detail::striped_wheel wheel{Buckets, 0};
  std::array<explored_node, Nodes> nodes;
  std::array<int, Nodes> scheduled{}, cancelled{}, taken{};
  std::vector<tick_number> taken_ticks;
  explored_atomic<bool> notified;  // set when the top has moved earlier

  void schedule(std::size_t i, tick_number due) {
    const auto may_insert = [&] {
      const unwatched here;
      order_[i] = ++steps_;
      return true;
    };
    wheel.schedule(nodes[i], due, detail::place::waiting, may_insert, [this] { notified.store(true); });
    const unwatched here;
    ++scheduled[i];
  }
  void move(std::size_t i, tick_number due) {
    const auto may_move = [&] {
      const unwatched here;
      if (!nodes[i].is_inside()) ++scheduled[i];
      return true;
    };
    const auto moved = [&] {
      const unwatched here;
      order_[i] = ++steps_;
    };
    wheel.reschedule(nodes[i], due, detail::place::waiting, may_move, moved,
                     [this] { notified.store(true); });
  }
  void cancel(std::size_t i) {
    const bool was_scheduled = wheel.cancel(nodes[i]);
    const unwatched here;
    cancelled[i] += was_scheduled ? 1 : 0;
  }
  void cancel_in_place(std::size_t i) {
    const bool was_scheduled = nodes[i].cancel_in_place(nodes[i].generation());
    const unwatched here;
    cancelled[i] += was_scheduled ? 1 : 0;
  }
  /// Schedules node `i` where it lies, if it can stay there.
  void schedule_in_place(std::size_t i, tick_number due) {
    if (!wheel.schedule_in_place(nodes[i], due, detail::place::waiting)) return schedule(i, due);
    const unwatched here;
    ++scheduled[i];
    order_[i] = ++steps_;
  }
  void take(tick_number to, std::size_t limit = unlimited) {
    wheel.take_due(to, limit, [this, to](detail::shared_node& taken_node, tick_number tick) {
      const unwatched here;
      const auto& n = static_cast<explored_node&>(taken_node);
      expect(n.due == tick, "a node is taken at its tick");
      expect(tick <= to, "a node is not taken before its tick");
      for (const explored_node& other : nodes)  // the stripe is locked
        expect(!other.is_inside() || (other.due - tick) % 2 != 0 || comes_before(n, other),
               "nodes of a stripe are taken in the order of ticks, and within a tick in the order of "
               "scheduling");
      taken_ticks.push_back(tick);
      ++taken[number_of(n)];
    });
  }
  /// Checks that next_due() is exact: its last step reads what it returns.
  std::optional<tick_number> ask() {
    const std::optional<tick_number> due = wheel.next_due();
    const unwatched here;
    expect(due == earliest(), "next_due() is exact");
    return due;
  }
  /// A driver would now sleep until the next node is due or it is notified.
  void decide_sleep() {
    const auto due = ask();
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
    std::map<tick_number, const explored_node*> last;
    wheel.for_each([&](const detail::shared_node& visited) {
      const auto& n = static_cast<const explored_node&>(visited);
      ++inside[number_of(n)];
      const explored_node*& before = last[n.due];
      expect(before == nullptr || comes_before(*before, n), "nodes of a tick are in the order of scheduling");
      before = &n;
    });
    for (std::size_t i = 0; i != Nodes; ++i) {
      expect(cancelled[i] + taken[i] + inside[i] == scheduled[i], "a node leaves the wheel once");
      expect(nodes[i].is_inside() == (inside[i] == 1), "a node knows whether it is in the wheel");
    }
    const std::string wrong = wheel.fault();
    expect(wrong.empty(), wrong.c_str());
    const std::optional<tick_number> due = ask();
    expect(!sleeps_ || notified.load() || !due || (sleeping_until_ && *sleeping_until_ <= *due),
           "a driver that sleeps past the earliest node is notified");
  }
  /// Takes all remaining nodes.
  void take_rest() {
    take(std::numeric_limits<tick_number>::max());
    for (const explored_node& n : nodes) expect(!n.is_inside(), "all nodes are taken in the end");
    check();
  }

 private:
  std::size_t number_of(const explored_node& n) const { return static_cast<std::size_t>(&n - nodes.data()); }
  bool comes_before(const explored_node& a, const explored_node& b) const {
    return a.due < b.due || (a.due == b.due && order_[number_of(a)] < order_[number_of(b)]);
  }
  std::optional<tick_number> earliest() const {
    std::optional<tick_number> earliest;
    for (const explored_node& n : nodes)
      if (n.is_inside() && (!earliest || n.due_tick() < *earliest)) earliest = n.due_tick();
    return earliest;
  }

  std::array<int, Nodes> order_{};  // in which they were last scheduled or moved
  int steps_ = 0;
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
