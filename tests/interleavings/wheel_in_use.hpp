// A wheel under the explorer, and what is true of it whatever its threads do.
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

#include <rondo/detail/wheel_core.hpp>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"

namespace rondo::test {

/// Two stripes, few buckets, and some nodes. Node i is put in, moved and cancelled by one thread alone, as the
/// wheel asks for; and one thread takes what is due.
template <class Sync, std::size_t Nodes, std::size_t Buckets = 2>
struct wheel_in_use {
  detail::wheel_core<Sync> wheel{Buckets};
  std::array<detail::node, Nodes> nodes;
  std::array<int, Nodes> put_in{}, cancelled{}, taken{};
  std::vector<tick_number> taken_ticks;
  explored_atomic<bool> told;  // that the earliest tick has moved earlier

  void schedule(std::size_t i, tick_number due) {
    wheel.schedule(nodes[i], due, insert_hooks{*this, i});
    ++put_in[i];
  }
  void move(std::size_t i, tick_number due) { wheel.reschedule(nodes[i], due, insert_hooks{*this, i}); }
  void cancel(std::size_t i) { cancelled[i] += wheel.cancel(nodes[i]) ? 1 : 0; }
  void take(tick_number to, std::size_t limit = unlimited) {
    wheel.take_due(to, limit, [this, to](detail::node& n, tick_number tick) {
      expect(n.due == tick, "a node is taken at its tick");
      expect(tick <= to, "a node is not taken before its tick");
      for (const detail::node& other : nodes)  // the stripe is locked
        expect(other.wheel == nullptr || (other.due - tick) % 2 != 0 || comes_before(n, other),
               "nodes of a stripe are taken in the order of ticks, and in a tick in the order of scheduling");
      taken_ticks.push_back(tick);
      ++taken[number_of(n)];
    });
  }
  /// next_due(), which looks last at what it answers.
  std::optional<tick_number> ask() {
    const std::optional<tick_number> due = wheel.next_due();
    expect(due == earliest(), "next_due() is exact");
    return due;
  }
  /// When a driver then sleeps, until the next node is due or it is told.
  void look() {
    sleeping_until_ = ask();
    sleeps_ = true;
  }
  void drive(tick_number to) {
    told.store(false);
    take(to);
    look();
  }

  void check() {
    std::array<int, Nodes> inside{};
    std::map<tick_number, const detail::node*> last;
    wheel.for_each([&](detail::node& n) {
      ++inside[number_of(n)];
      const detail::node*& before = last[n.due];
      expect(before == nullptr || comes_before(*before, n), "nodes of a tick are in the order of scheduling");
      before = &n;
    });
    for (std::size_t i = 0; i != Nodes; ++i) {
      expect(cancelled[i] + taken[i] + inside[i] == put_in[i], "a node leaves the wheel once");
      expect((nodes[i].wheel != nullptr) == (inside[i] == 1), "a node knows whether it is in the wheel");
    }
    const std::string wrong = wheel.fault();
    expect(wrong.empty(), wrong.c_str());
    const std::optional<tick_number> due = ask();
    expect(!sleeps_ || told.load() || !due || (sleeping_until_ && *sleeping_until_ <= *due),
           "who sleeps longer than until the earliest is told");
  }
  /// Takes all that is left.
  void take_rest() {
    take(std::numeric_limits<tick_number>::max());
    for (const detail::node& n : nodes) expect(n.wheel == nullptr, "all are taken in the end");
    check();
  }

 private:
  struct insert_hooks {
    wheel_in_use& w;
    std::size_t i;
    bool may_insert() const {
      w.order_[i] = ++w.steps_;
      return true;
    }
    void top_moved_earlier() { w.told.store(true); }
    void before_move(detail::node& n) { w.put_in[i] += n.wheel == nullptr ? 1 : 0; }  // counted as a new one
  };

  std::size_t number_of(const detail::node& n) const { return static_cast<std::size_t>(&n - nodes.data()); }
  bool comes_before(const detail::node& a, const detail::node& b) const {
    return a.due < b.due || (a.due == b.due && order_[number_of(a)] < order_[number_of(b)]);
  }
  std::optional<tick_number> earliest() const {
    std::optional<tick_number> earliest;
    for (const detail::node& n : nodes)
      if (n.wheel != nullptr && (!earliest || n.due < *earliest)) earliest = n.due;
    return earliest;
  }

  std::array<int, Nodes> order_{};  // in which they were put in or moved last
  int steps_ = 0;
  bool sleeps_ = false;
  std::optional<tick_number> sleeping_until_;
};

/// What these threads do at the same time with a wheel that `prepare` has set.
template <class Wheel = wheel_in_use<explored, 3>>
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
