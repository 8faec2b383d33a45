// The wheel's protocol: several threads schedule, move, cancel and take nodes.
#include "interleavings/wheel_in_use.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace interleavings_wheel {

using namespace rondo;
using namespace rondo::test;

using wheel_type = wheel_in_use<3>;

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

TEST_CASE("wheel: a node is scheduled while others are taken") {
  for (const tick_number due : {0, 1, 2, 4})
    check_every_schedule(
        on_wheel({[](wheel_type& w) {
                   w.schedule(2, 2);
                   w.schedule(1, 4);
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
                                   w.all.next_due();
                                 },
                                 [](wheel_type& w) { w.take(2); }}));
}

/// A driver asks when the next node is due, and would sleep until then unless it is notified.
template <class Wheel>
std::function<scenario()> asking_and_scheduling(tick_number cancelled_before, tick_number earliest) {
  return [=] {
    const auto w = std::make_shared<Wheel>();
    w->schedule(1, cancelled_before);
    w->cancel(1);  // its key remains
    w->notified.store(false);
    return scenario{{{"driver", [=] { w->decide_sleep(); }},
                     {"user", [=] { w->schedule(0, 4); }},
                     {"user", [=] { w->schedule(2, earliest); }}},
                    [=] { w->check(); }};
  };
}

TEST_CASE("wheel: the driver sees the earliest node or is notified of it") {
  for (const tick_number before : {0, 1, 2, 3, 4, 6})
    for (const tick_number earliest : {2, 3})
      check_every_schedule(asking_and_scheduling<wheel_type>(before, earliest));
}

TEST_CASE(
    "wheel: the driver sees the earliest node or is notified of it, while another thread corrects keys") {
  for (const tick_number before : {1, 2})
    for (const tick_number due : {3, 4})
      check_every_schedule(
          [=] {
            const auto w = std::make_shared<wheel_type>();
            w->schedule(1, before);
            w->cancel(1);  // its key remains, and is earlier than `due`
            w->schedule(2, 9);
            w->notified.store(false);
            return scenario{{{"driver", [=] { w->decide_sleep(); }},
                             {"user", [=] { w->schedule(0, due); }},
                             {"user", [=] { w->ask(); }}},
                            [=] { w->check(); }};
          },
          few);
}

TEST_CASE(
    "wheel: the driver sees the earliest node or is notified of it, although its shard is only made now") {
  const auto in_new_shard = [](wheel_type& w) { w.schedule_in_shared_shard(0, 4); };
  const auto later_in_it = [](wheel_type& w) { w.schedule_in_shared_shard(2, 5); };
  for (const bool two_make_it : {false, true})
    check_every_schedule(
        [=] {
          const auto w = std::make_shared<wheel_type>();
          w->schedule(1, 2);
          w->cancel(1);  // its key remains: it is what the driver has waited for
          w->notified.store(false);
          scenario what{{{"driver", [=] { w->decide_sleep(); }}, {"user", [=] { in_new_shard(*w); }}},
                        [=] { w->check(); }};
          if (two_make_it) what.threads.push_back({"user", [=] { later_in_it(*w); }});
          return what;
        },
        two_make_it ? std::optional(few) : std::nullopt);
}

TEST_CASE("shards that are not locked fail") {
  planted.not_locked = lock_rank::shard;
  const auto e = explore_and_tell(asking_and_scheduling<wheel_type>(4, 2));
  planted = {};
  CHECK(e.failure != "");
}

}  // namespace interleavings_wheel
