// The pattern of examples/patterns: operations that wait for an event or a timeout.
#include "waiting_operations.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "scheduler/virtual_time.hpp"

namespace on_top_waiting_operations {

using namespace rondo;
using namespace rondo::test;

/// What has become of one operation.
struct ends {
  int completed = 0, timed_out = 0;

  auto count() {
    return [this](outcome how) { ++(how == outcome::completed ? completed : timed_out); };
  }
};

TEST_CASE("an operation is completed by the change of any of its keys, and nothing of it is left") {
  for (const int key : {1, 2, 3}) {
    manual_timer time;
    waiting_operations<int> all(time);
    ends e;
    bool may = false;
    int tries = 0;
    const auto try_it = [&, owned = std::make_shared<int>()] {
      ++tries;
      return may;
    };
    all.submit({1, 2, 3}, 10s, try_it, e.count());
    CHECK(tries == 1);
    CHECK(all.registrations() == 3);
    CHECK(all.changed(4) == 0);
    CHECK(tries == 1);
    CHECK(all.changed(key) == 0);
    CHECK(tries == 2);
    may = true;
    CHECK(all.changed(key) == 1);
    CHECK(all.registrations() == 0);
    CHECK(time.pending() == 0);
    for (const int other : {1, 2, 3}) CHECK(all.changed(other) == 0);
    time.advance(1min);
    CHECK(tries == 3);
    CHECK(e.completed == 1);
    CHECK(e.timed_out == 0);
  }
}

TEST_CASE("an operation that is possible at once does not wait") {
  manual_timer time;
  waiting_operations<int> all(time);
  ends e;
  all.submit(
      {1, 2}, 10s, [] { return true; }, e.count());
  CHECK(e.completed == 1);
  CHECK(all.registrations() == 0);
  CHECK(time.pending() == 0);
}

TEST_CASE("an operation ends by its timeout, at its time, and is then no longer tried") {
  manual_timer time;
  waiting_operations<int> all(time);
  ends e;
  bool may = false;
  const auto owned = std::make_shared<int>();
  all.submit(
      {1, 2}, 10s, [&may, owned] { return may; }, e.count());
  time.advance(10s - 1ms);
  CHECK(e.timed_out == 0);
  time.advance(1ms);
  CHECK(e.timed_out == 1);
  CHECK(all.registrations() == 0);
  CHECK(owned.use_count() == 1);
  may = true;
  CHECK(all.changed(1) == 0);
  CHECK(e.completed == 0);
}

TEST_CASE("a change completes all operations that it makes possible, and no others") {
  manual_timer time;
  waiting_operations<int> all(time);
  std::array<ends, 3> e;
  int available = 0;
  for (const int needed : {1, 2, 3})
    all.submit(
        {1}, 10s, [&available, needed] { return available >= needed; },
        e[static_cast<std::size_t>(needed - 1)].count());
  available = 2;
  CHECK(all.changed(1) == 2);
  CHECK(e[2].completed == 0);
  CHECK(all.registrations() == 1);
}

TEST_CASE("the end of an operation may submit the next one, and change a key") {
  manual_timer time;
  waiting_operations<int> all(time);
  ends first, second;
  bool may = false;
  const auto possible = [&] { return may; };
  all.submit({1}, 1s, possible, [&](outcome how) {
    first.count()(how);
    all.submit({2}, 1s, possible, second.count());
    may = true;
    CHECK(all.changed(2) == 1);
  });
  time.advance(1s);
  CHECK(first.timed_out == 1);
  CHECK(second.completed == 1);
  CHECK(all.registrations() == 0);
}

TEST_CASE("if the scheduler takes no timer, nothing is registered; an attempt that throws is made again") {
  manual_timer time;
  waiting_operations<int> all(time);
  ends e;
  bool fails = true;
  const auto try_it = [&] { return fails ? throw std::runtime_error("not now") : true; };
  CHECK_THROWS_AS(all.submit({1, 2}, 1s, try_it, e.count()), std::runtime_error);
  CHECK(all.registrations() == 2);
  CHECK_THROWS_AS(all.changed(1), std::runtime_error);
  fails = false;
  CHECK(all.changed(2) == 1);
  CHECK(e.completed == 1);
  time.stop();
  CHECK_THROWS_AS(all.submit({1, 2}, 1s, try_it, e.count()), stopped_error);
  CHECK(all.registrations() == 0);
}

TEST_CASE("an operation whose attempt or end throws keeps no other from being tried") {
  manual_timer time;
  waiting_operations<int> all(time);
  std::array<ends, 2> e;
  bool may = false;
  const auto possible = [&] { return may; };
  const auto failing = [&] { return may ? throw std::runtime_error("not now") : false; };
  all.submit({1}, 1s, failing, e[0].count());
  all.submit({1}, 1s, possible, [](outcome) { throw std::logic_error("later than the first one"); });
  all.submit({1}, 1s, possible, e[1].count());
  may = true;
  CHECK_THROWS_AS(all.changed(1), std::runtime_error);
  CHECK(e[1].completed == 1);
  CHECK(all.registrations() == 1);
  time.advance(1s);
  CHECK(e[0].timed_out == 1);
}

TEST_CASE("the destructor drops what waits, and then no timeout comes") {
  manual_timer time;
  ends e;
  const auto owned = std::make_shared<int>();
  {
    waiting_operations<int> all(time);
    all.submit(
        {1, 2}, 1s, [owned] { return false; }, e.count());
  }
  CHECK(owned.use_count() == 1);
  time.advance(1min);
  CHECK(e.timed_out == 0);
}

}  // namespace on_top_waiting_operations
