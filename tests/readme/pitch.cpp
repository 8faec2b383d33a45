// Listings of features.md.
#include <doctest/doctest.h>

#include <rondo/manual_timer.hpp>
#include <rondo/wheel.hpp>

namespace readme_pitch {

using namespace std::chrono_literals;

TEST_CASE("a timeout is a timer that is normally cancelled before it fires") {
  struct request_type {
    int answers = 0, given_up = 0;
    void give_up() { ++given_up; }
    void answer() { ++answers; }
  };
  for (const auto answered_after : {499ms, 501ms}) {
    rondo::manual_timer timer;
    request_type sent;
    request_type* const request = &sent;
    const rondo::timer_id timeout = timer.schedule_after(500ms, [request] { request->give_up(); });
    timer.advance(answered_after);
    if (timer.cancel(timeout) == rondo::cancel_result::cancelled) request->answer();
    CHECK(sent.answers == (answered_after < 500ms ? 1 : 0));
    CHECK(sent.answers + sent.given_up == 1);
  }
}

TEST_CASE("a day of virtual time passes at once") {
  int runs = 0;
  const auto work = [&] { ++runs; };
  rondo::manual_timer time;
  time.schedule_every(333400us, work);
  time.advance(24h);  // 259,148 runs, at once
  CHECK(runs == 259'148);
}

struct connection : rondo::wheel_node {
  bool is_open = true;
  void close() { is_open = false; }
};

TEST_CASE("the bare wheel fires due timers") {
  connection heard_of, silent;
  const rondo::tick_number now = 100;
  rondo::wheel<connection> idle;  // a connection derives from rondo::wheel_node
  idle.schedule(silent, now);
  idle.schedule(heard_of, now);
  idle.schedule(heard_of, now + 30'000);  // moves it
  idle.advance(now, [](connection& c) { c.close(); });
  CHECK(heard_of.is_open);
  CHECK(!silent.is_open);
  idle.advance(now + 30'000, [](connection& c) { c.close(); });
  CHECK(!heard_of.is_open);
}

}  // namespace readme_pitch
