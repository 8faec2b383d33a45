// Nodes outside the wheel's window, in all their states: in a far list, waiting to be redistributed, in a lower list,
// in a bucket, extracted, overdue, and taken. One node is redistributed at a time, so the driver releases the lock in
// each of these states, and another thread can find the node in it.
#include "failing_new.hpp"
#include "interleavings/wheel_in_use.hpp"

#include <cstddef>
#include <functional>
#include <new>
#include <vector>

namespace interleavings_far_nodes {

using namespace rondo;
using namespace rondo::test;

template <std::size_t Buckets>
using far_wheel = wheel_in_use<8, Buckets, 1>;
template <std::size_t Buckets>
using full_wheel = wheel_in_use<8 + 64, Buckets, 1>;

/// All nodes are in one shard and in one far list, the one for 128 … 255. Node 7 is not in the wheel.
template <class Wheel>
void far_away(Wheel& w) {
  w.schedule(0, 132);
  w.schedule(1, 128);
  w.schedule(2, 132);
  w.schedule(3, 164);
  w.schedule(4, 128);
  w.schedule(5, 132);
  w.schedule(6, 160);
}

/// The nodes of tick 128 have been taken; some of the others are not redistributed yet.
template <class Wheel>
void partly_redistributed(Wheel& w) {
  far_away(w);
  w.take(128);
}

/// The window has passed the nodes.
template <class Wheel>
void overdue(Wheel& w) {
  w.schedule(7, 400);
  w.take(400);
  far_away(w);
}

/// As far_away(), but the pool has no free chunk, and the driver has found no memory for its first step.
template <class Wheel>
void without_memory(Wheel& w) {
  far_away(w);
  const failing_new failing;
  std::size_t i = 8;
  try {
    for (tick_number span = 1024;; span *= 8)  // each node gets its own far list
      for (tick_number digit = 1; digit != 8; ++digit) w.schedule(i++, digit * span);
  } catch (const std::bad_alloc&) {
  }
  bool refused = false;
  try {
    w.take(128);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  expect(refused && w.taken_ticks.empty(), "there is no memory for nodes that enter the window");
}

/// A user's calls for node 0, which is due at 132, or for node 7.
template <class Wheel>
std::vector<std::function<void(Wheel&)>> calls() {
  const auto move_to = [](tick_number to) { return [=](Wheel& w) { w.schedule(0, to); }; };
  const auto schedule_at = [](tick_number due) { return [=](Wheel& w) { w.schedule(7, due); }; };
  return {[](Wheel& w) { w.cancel(0); },
          move_to(128),
          move_to(132),  // behind the others of that tick
          move_to(160),
          move_to(7),
          move_to(10000),
          move_to(4),  // overdue, if the window has passed it
          schedule_at(128),
          schedule_at(132),
          schedule_at(160),
          schedule_at(7),
          schedule_at(4)};
}

/// The driver makes two passes.
template <class Wheel>
void check_with_driver(void (*prepare)(Wheel&), tick_number first, tick_number second) {
  const auto driver = [=](Wheel& w) {
    w.drive(first);
    w.drive(second);
  };
  for (const auto& call : calls<Wheel>()) check_every_schedule(on_wheel<Wheel>(prepare, {driver, call}));
  check_every_schedule(on_wheel<Wheel>(prepare, {driver, [](Wheel& w) { w.ask(); }}), few);
}

TEST_CASE("far nodes that enter the window, the driver, and each call of a user") {
  check_with_driver(far_away<far_wheel<2>>, 128, 260);
  check_with_driver(far_away<far_wheel<4>>, 128, 260);
}

TEST_CASE("far nodes that are overdue, the driver, and each call of a user") {
  check_with_driver(overdue<far_wheel<2>>, 128, 400);
}

TEST_CASE("far nodes, the driver when it has memory again, and each call of a user" *
          doctest::skip(!failing_new::available)) {
  check_with_driver(without_memory<full_wheel<2>>, 128, 260);
  check_with_driver(without_memory<full_wheel<4>>, 128, 260);
}

template <class Wheel>
void check_with_driver_and_two(void (*prepare)(Wheel&), const std::function<void(Wheel&)>& one,
                               const std::function<void(Wheel&)>& other) {
  check_every_schedule(on_wheel<Wheel>(prepare, {[](Wheel& w) { w.drive(400); }, one, other}), few);
}

template <class Wheel>
void check_cancelling_and_moving(void (*prepare)(Wheel&)) {
  for (const tick_number due : {128, 132, 7})
    check_with_driver_and_two<Wheel>(
        prepare,
        [](Wheel& w) {
          w.cancel(1);
          w.cancel(4);
        },
        [=](Wheel& w) {
          w.schedule(5, due);
          w.schedule(7, 132);
        });
}

TEST_CASE("far nodes, the driver, a user who cancels the earliest, and one who adds to the same ticks") {
  check_cancelling_and_moving(far_away<far_wheel<2>>);
  check_cancelling_and_moving(far_away<far_wheel<4>>);
  check_cancelling_and_moving(overdue<far_wheel<2>>);
}

template <class Wheel>
void check_partly_redistributed() {
  for (const auto& call : calls<Wheel>())
    check_with_driver_and_two<Wheel>(
        partly_redistributed,
        [](Wheel& w) {
          w.cancel(2);
          w.schedule(1, 132);
          w.schedule(4, 164);
        },
        call);
}

TEST_CASE("far nodes that wait to be redistributed, the driver and two users") {
  check_partly_redistributed<far_wheel<2>>();
  check_partly_redistributed<far_wheel<4>>();
}

template <class Wheel>
void check_earliest(void (*prepare)(Wheel&)) {
  const auto prepare_unnotified = [=](Wheel& w) {
    prepare(w);
    w.notified.store(false);
  };
  for (const tick_number due : {1, 4, 7, 124, 127, 128, 132})
    check_every_schedule(
        on_wheel<Wheel>(prepare_unnotified,
                        {[](Wheel& w) { w.decide_sleep(); }, [=](Wheel& w) { w.schedule(7, due); },
                         [](Wheel& w) {
                           for (const std::size_t i : {0U, 1U, 2U, 4U, 5U}) w.cancel(i);
                           w.schedule(6, 131);
                         }}),
        few);
}

TEST_CASE("far nodes: the driver sees the earliest node or is notified of it") {
  check_earliest(far_away<far_wheel<2>>);
  check_earliest(partly_redistributed<far_wheel<2>>);
  check_earliest(partly_redistributed<far_wheel<4>>);
  check_earliest(overdue<far_wheel<2>>);
}

TEST_CASE("the only node that is overdue is cancelled, while the driver looks for the earliest one") {
  const auto one_of_two_is_overdue = [](far_wheel<2>& w) {
    w.schedule(7, 400);
    w.take(400);
    w.schedule(0, 132);
    w.schedule(1, 1000);
  };
  const auto looks = [](far_wheel<2>& w) { w.all.next_due(); };
  const auto cancels = [](far_wheel<2>& w) { w.cancel(0); };
  check_every_schedule(on_wheel<far_wheel<2>>(one_of_two_is_overdue, {looks, cancels}));
}

}  // namespace interleavings_far_nodes
