// The wheel's own protocol: nodes that several threads put in, move and take out.
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include <rondo/detail/wheel_core.hpp>

namespace {

using namespace rondo::test;
using rondo::tick_number;
using rondo::detail::node;
using rondo::detail::wheel_core;

/// Two buckets, and some nodes. Node i is put in, moved and cancelled by thread i alone, as the wheel asks for;
/// and one thread takes what is due.
template <class Sync>
struct wheel_in_use {
  wheel_core<Sync> wheel{2};
  std::array<node, 3> nodes;
  std::array<int, 3> put_in{}, cancelled{}, taken{};
  std::vector<tick_number> taken_ticks;
  explored_atomic<bool> told;  // that the earliest tick has moved earlier

  struct gate {
    wheel_in_use& w;
    bool open() const { return true; }
    void earliest() { w.told.store(true); }
    void leave(node&) {}
  };

  void schedule(std::size_t i, tick_number due) {
    wheel.schedule(nodes[i], due, gate{*this});
    ++put_in[i];
  }
  void cancel(std::size_t i) { cancelled[i] += wheel.cancel(nodes[i]) ? 1 : 0; }
  void take(tick_number to) {
    wheel.take_due(to, rondo::unlimited, [this, to](node& n, tick_number tick) {
      expect(n.due == tick, "a node is taken at its tick");
      expect(tick <= to, "a node is not taken before its tick");
      taken_ticks.push_back(tick);
      ++taken[static_cast<std::size_t>(&n - nodes.data())];
    });
  }

  void check() {
    std::array<int, 3> inside{};
    wheel.for_each([&](node& n) { ++inside[static_cast<std::size_t>(&n - nodes.data())]; });
    for (std::size_t i = 0; i != nodes.size(); ++i) {
      expect(cancelled[i] + taken[i] + inside[i] == put_in[i], "a node leaves the wheel once");
      expect((nodes[i].wheel != nullptr) == (inside[i] == 1), "a node knows whether it is in the wheel");
    }
    check_keys();
    check_next_due();
  }

 private:
  void check_keys() {
    wheel.for_each_bucket([](std::size_t, std::optional<tick_number> key, const auto& b) {
      b.for_each([&](const node& n) {
        expect(key && *key <= n.due, "a key is not later than a node of its bucket");
      });
    });
  }
  void check_next_due() {
    std::optional<tick_number> earliest;
    for (const node& n : nodes)
      if (n.wheel != nullptr && (!earliest || n.due < *earliest)) earliest = n.due;
    expect(wheel.next_due() == earliest, "next_due() finds the earliest node");
  }
};

using wheel_type = wheel_in_use<explored>;

template <class Wheel = wheel_type>
std::function<scenario()> on_wheel(std::function<void(Wheel&)> prepare,
                                   std::vector<std::function<void(Wheel&)>> threads) {
  return [=] {
    const auto w = std::make_shared<Wheel>();
    prepare(*w);
    scenario what;
    for (const auto& act : threads) what.threads.push_back({"user", [w, act] { act(*w); }});
    what.check = [w] { w->check(); };
    return what;
  };
}

template <class Wheel>
void nothing(Wheel&) {}

TEST_CASE("wheel: schedule and schedule") {
  for (const tick_number other : {0, 1, 2, 4})
    check_every_schedule(on_wheel({nothing<wheel_type>}, {[](wheel_type& w) { w.schedule(0, 2); },
                                                          [=](wheel_type& w) { w.schedule(1, other); },
                                                          [](wheel_type& w) { w.schedule(2, 6); }}));
}

TEST_CASE("wheel: schedule, cancel and take") {
  for (const tick_number other : {0, 1, 2, 4})
    check_every_schedule(on_wheel({[=](wheel_type& w) { w.schedule(1, other); }},
                                  {[](wheel_type& w) {
                                     w.schedule(0, 2);
                                     w.cancel(0);
                                   },
                                   [](wheel_type& w) { w.cancel(1); }, [](wheel_type& w) { w.take(2); }}));
}

TEST_CASE("wheel: what is scheduled while others are taken") {
  for (const tick_number due : {0, 1, 2, 4})
    check_every_schedule(
        on_wheel({[](wheel_type& w) {
                   w.schedule(1, 2);
                   w.schedule(2, 4);
                 }},
                 {[=](wheel_type& w) { w.schedule(0, due); }, [](wheel_type& w) { w.take(2); }}));
}

TEST_CASE("wheel: of two nodes that a thread schedules one after the other, the earlier one is taken first") {
  check_every_schedule([] {
    const auto w = std::make_shared<wheel_type>();
    w->schedule(2, 2);
    return scenario{{{"user",
                      [w] {
                        w->schedule(0, 1);
                        w->schedule(1, 2);
                      }},
                     {"driver", [w] { w->take(2); }}},
                    [w] {
                      w->check();
                      const std::vector<tick_number> wrong{2, 2, 1};
                      expect(w->taken_ticks != wrong, "the earlier one is taken first");
                    }};
  });
}

TEST_CASE("wheel: a bucket whose due node is cancelled, and whose key is corrected, while nodes are taken") {
  check_every_schedule(on_wheel({[](wheel_type& w) {
                                  w.schedule(0, 2);
                                  w.schedule(1, 4);
                                }},
                                {[](wheel_type& w) {
                                   w.cancel(0);
                                   w.wheel.next_due();
                                 },
                                 [](wheel_type& w) { w.take(2); }}));
}

/// A driver that looks when the next node is due, and would sleep until then unless it is told.
template <class Wheel>
std::function<scenario()> looking_and_scheduling(tick_number cancelled_before, tick_number earliest) {
  return [=] {
    const auto w = std::make_shared<Wheel>();
    const auto seen = std::make_shared<std::optional<tick_number>>();
    w->schedule(1, cancelled_before);
    w->cancel(1);  // which leaves its key where it is
    w->told.store(false);
    return scenario{{{"driver", [=] { *seen = w->wheel.next_due(); }},
                     {"user", [=] { w->schedule(0, 4); }},
                     {"user", [=] { w->schedule(2, earliest); }}},
                    [=] {
                      w->check();
                      expect(w->told.load() || *seen == earliest,
                             "who sleeps longer than until the earliest is told");
                    }};
  };
}

TEST_CASE("wheel: the earliest node is seen or told of") {
  for (const tick_number before : {0, 1, 2, 3, 4, 6})
    for (const tick_number earliest : {2, 3})
      check_every_schedule(looking_and_scheduling<wheel_type>(before, earliest));
}

struct buckets_not_locked : explored {
  struct bucket_mutex : explored_mutex_of<explored::bucket> {
    void lock() {
      explored_mutex::lock();
      explored_mutex::unlock();
    }
  };
};

TEST_CASE("a wheel whose buckets are not locked is found out") {
  const auto e = explore_and_tell(looking_and_scheduling<wheel_in_use<buckets_not_locked>>(4, 2));
  CHECK(e.failure != "");
}

}  // namespace
