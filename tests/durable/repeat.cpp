// Repeated tasks: how they are declared, and how their points follow each other in the database. The same tests run for
// each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/database.hpp"

namespace durable_repeat {

using namespace durable_test;
namespace detail = rondo::durable::detail;
using detail::zoned_point;
using rondo::durable::key_taken;
using rondo::durable::listed;
using rondo::durable::missed_points;
using rondo::durable::repeated;
using rondo::durable::schedule;
using rondo::durable::task;
using rondo::durable::task_state;
using rondo::durable::wall_time;

repeated each_minute(const std::string& payload = "p") {
  return {.key = "k", .payload = payload, .when = schedule::every(1min)};
}

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db};  // its maximum of attempts is 3

  task now() { return *tasks->find("default", "k"); }
  listed row() { return tasks->list("default").at(0); }
  std::size_t count() const { return db->rows().size(); }

  ticket held(const repeated& what = each_minute()) {
    tasks->repeat(what);
    db->pass(1min);
    return ticket_of(w.claim_one());
  }
  ticket running(const repeated& what = each_minute()) {
    const ticket t = held(what);
    REQUIRE(w.begin(t));
    return t;
  }
  bool pass(ticket t, const std::optional<zoned_point>& next, bool given_up = false,
            const std::string& reason = "") {
    return w.take({.passed = {{t, next, given_up, reason}}}).passed == std::vector{t};
  }
  bool pass(ticket t, wall_time next, bool given_up = false, const std::string& reason = "") {
    return pass(t, zoned_point{next}, given_up, reason);
  }
};

TEST_CASE("a declared task waits for its first point") {
  in_use x;
  const wall_time before = x.db->now();
  const std::int64_t id = x.tasks->repeat(each_minute());
  const wall_time after = x.db->now();
  const task t = x.now();
  CHECK(t.id == id);
  CHECK(t.id > 0);
  CHECK(t.queue == "default");
  CHECK(t.key == "k");
  CHECK(t.payload == "p");
  CHECK(t.attempt == 0);
  REQUIRE(t.point);
  CHECK(t.due == *t.point);
  CHECK(t.due >= before + 1min);
  CHECK(t.due <= after + 1min + 1us);
  CHECK(x.w.claim_up_to(10).empty());
  CHECK(x.row().state == task_state::waiting);
  CHECK(x.row().point == t.point);
  CHECK(x.tasks->find(id)->point == t.point);
}

TEST_CASE("tasks that are not repeated have no point") {
  in_use x;
  const auto id = x.tasks->submit_after(0s, {});
  CHECK_FALSE(x.tasks->find(id)->point);
  CHECK_FALSE(x.row().point);
  const claim c = x.w.claim_one();
  CHECK_FALSE(c.what.point);
  CHECK(c.schedule.empty());
}

TEST_CASE("an equal declaration changes nothing, by whatever store it is made, and whatever the task does") {
  const repeated whole{.queue = "q",
                       .key = "k",
                       .payload = std::string(1000, 'x'),
                       .when = schedule::every(1min),
                       .missed = missed_points::skip,
                       .lane = "l"};
  for (const repeated& what : {each_minute(), each_minute(""), whole}) {
    in_use x;
    worker w(*x.db, "q", {.queues = {"default", "q"}, .window = 5s, .lease = 30s, .max_attempts = 3});
    const std::int64_t id = x.tasks->repeat(what);
    const auto unchanged = [&] {
      const auto before = x.tasks->list(what.queue).at(0);
      CHECK(x.db->open_store()->repeat(what) == id);
      const auto after = x.tasks->list(what.queue).at(0);
      CHECK(after.due == before.due);
      CHECK(after.point == before.point);
      CHECK(after.fence == before.fence);
      CHECK(after.state == before.state);
      CHECK(after.attempt == before.attempt);
      CHECK(after.payload == what.payload);
      CHECK(x.count() == 1);
    };
    unchanged();
    x.tasks->reschedule_after(id, 0s);
    unchanged();
    const ticket t = ticket_of(w.claim_one());
    unchanged();
    CHECK(w.begin(t));
    unchanged();
    CHECK(w.retry(t, 0s));
    unchanged();
  }
}

TEST_CASE("a declaration that differs in any member replaces the contents, under the same id") {
  const std::string large(1000, 'x');
  for (const repeated& other : {
           repeated{.key = "k", .payload = "other", .when = schedule::every(1min)},
           repeated{.key = "k", .payload = large, .when = schedule::every(1min)},
           repeated{.key = "k", .payload = "p", .when = schedule::every(61s)},
           repeated{
               .key = "k", .payload = "p", .when = schedule::every(1min), .missed = missed_points::run_all},
           repeated{.key = "k", .payload = "p", .when = schedule::every(1min), .lane = "l"},
       }) {
    in_use x;
    const std::int64_t id = x.tasks->repeat(each_minute());
    const task before = x.now();
    x.db->pass(30s);
    const wall_time now = x.db->now();
    CHECK(x.tasks->repeat(other) == id);
    const task after = x.now();
    CHECK(after.payload == other.payload);
    CHECK(after.fence > before.fence);
    CHECK(after.due == *after.point);
    CHECK(after.due >= now + 1min);  // it goes on from now
    CHECK(after.due <= now + 62s);
    CHECK(x.count() == 1);
    CHECK(x.tasks->repeat(each_minute()) == id);  // and back
    CHECK(x.now().payload == "p");
    CHECK(x.db->wrong() == "");
    x.tasks->repeat(other);
    x.db->pass(62s);
    const claim c = x.w.claim_one();
    CHECK(c.what.payload == other.payload);
    CHECK(c.schedule == other.when.text());
    CHECK(c.missed == other.missed);
    CHECK(c.in_lane == !other.lane.empty());
  }
}

TEST_CASE("large payloads are replaced") {
  in_use x;
  const std::int64_t id = x.tasks->repeat(each_minute(std::string(1000, 'x')));
  CHECK(x.tasks->repeat(each_minute(std::string(2000, 'y'))) == id);
  CHECK(x.now().payload == std::string(2000, 'y'));
  CHECK(x.tasks->repeat(each_minute(std::string(2000, 'z'))) == id);
  CHECK(x.now().payload == std::string(2000, 'z'));
}

TEST_CASE("a claim leaves out the tasks whose schedules the caller cannot read") {
  in_use x;
  const std::vector<std::string> unreadable{"at full moon", schedule::every(1min).text()};
  std::vector<std::int64_t> left_out;
  left_out.push_back(x.tasks->repeat({.key = "a", .when = schedule::every(1min)}));
  left_out.push_back(x.tasks->repeat({.key = "b", .when = schedule::every(1min), .lane = "l"}));
  const auto other = x.tasks->repeat({.key = "c", .when = schedule::every(61s)});
  const auto in_lane = x.tasks->repeat({.key = "d", .when = schedule::every(62s), .lane = "m"});
  const auto plain = x.tasks->submit_after(63s, {});
  const std::vector<std::int64_t> readable{other, in_lane, plain};
  const auto claim_readable = [&] {
    return ids_of(x.w.claim_all({.claim_up_to = 3, .unreadable = unreadable}));
  };
  const auto claim_all = [&] { return ids_of(x.w.claim_up_to(10)); };
  x.db->pass(2min);
  CHECK(claim_readable() == readable);
  CHECK(claim_readable().empty());
  CHECK(claim_all() == left_out);
  x.db->pass(1min);  // the leases run out
  CHECK(claim_readable() == readable);
  CHECK(claim_readable().empty());
  CHECK(claim_all() == left_out);
}

TEST_CASE("declarations of different keys and queues are different tasks") {
  in_use x;
  const auto a = x.tasks->repeat(each_minute());
  const auto b = x.tasks->repeat({.key = "other", .payload = "p", .when = schedule::every(1min)});
  const auto c = x.tasks->repeat({.queue = "q", .key = "k", .payload = "p", .when = schedule::every(1min)});
  CHECK(a != b);
  CHECK(a != c);
  CHECK(b != c);
}

TEST_CASE("a key that a task has which is not repeated is taken; submissions find the key taken") {
  in_use x;
  const auto id = x.tasks->submit_after(1h, {.key = "k"});
  try {
    x.tasks->repeat(each_minute());
    FAIL("not refused");
  } catch (const key_taken& e) {
    CHECK(e.id() == id);
  }
  CHECK_FALSE(x.now().point);
  REQUIRE(x.tasks->cancel(id));
  const auto repeats = x.tasks->repeat(each_minute());
  CHECK_THROWS_AS(x.tasks->submit_after(0s, {.key = "k"}), key_taken);
  CHECK(x.now().id == repeats);
  x.tasks->submit_after(0s, {.key = "k", .replace = true});
  CHECK_FALSE(x.now().point);
  CHECK(x.count() == 1);
}

TEST_CASE("invalid declarations are refused with the value, and change nothing") {
  in_use x;
  const auto refused = [&](const repeated& what, const std::string& why) {
    CHECK_THROWS_WITH_AS(x.tasks->repeat(what), why.c_str(), std::invalid_argument);
  };
  const auto each = schedule::every(1s);
  refused({.key = "", .when = each}, "rondo: the key \"\" of a repeated task is empty");
  refused({.queue = "", .key = "k", .when = each}, "rondo: the queue \"\" is empty");
  refused({.key = "\xff", .when = each}, "rondo: the key \"\\xff\" is not UTF-8");
  refused({.key = "k", .when = each, .lane = "\xff"}, "rondo: the lane \"\\xff\" is not UTF-8");
  refused({.key = "k", .when = each, .missed = static_cast<missed_points>(7)},
          "rondo: there is no missed_points 7");
  refused({.key = "k", .when = schedule::every(rondo::duration::max())},
          "rondo: the schedule \"every 9223372036854776us\" has no point before the end of the clock");
  CHECK(x.count() == 0);
}

TEST_CASE("a task whose point is over waits for the next one, whether or not it has run") {
  for (const bool runs : {true, false}) {
    in_use x;
    const ticket t = runs ? x.running() : x.held();
    const wall_time next = *x.now().point + 1min;
    CHECK(x.pass(t, next));
    CHECK(x.now().point == next);
    CHECK(x.now().due == next);
    CHECK(x.now().attempt == 0);
    CHECK(x.row().state == task_state::waiting);
    CHECK(x.row().owner.empty());
    CHECK_FALSE(x.pass(t, next + 1min));  // no longer its own
    CHECK(x.w.claim_up_to(1).empty());
    x.db->pass(1min);
    const claim c = x.w.claim_one();
    CHECK(c.what.id == t.id);
    CHECK(c.what.fence > t.fence);
    CHECK(c.what.payload == "p");
  }
}

TEST_CASE("a point that is due within the window is claimed in the turn in which the one before is over") {
  in_use x;
  const ticket t = x.running({.key = "k", .when = schedule::every(1s)});
  const wall_time next = *x.now().point + 1s;
  const turn_result done = x.w.take({.passed = {{t, zoned_point{next}, false, ""}}, .claim_up_to = 10});
  CHECK(done.passed == std::vector{t});
  REQUIRE(done.claimed.size() == 1);
  CHECK(done.claimed[0].what.id == t.id);
  CHECK(done.claimed[0].what.attempt == 0);
  CHECK(done.claimed[0].remaining < -50s);
  CHECK(done.claimed[0].schedule == "every 1s");
}

TEST_CASE("the reason why the last point was given up is kept until a later one is done") {
  in_use x;
  ticket t = x.running();
  CHECK(x.pass(t, x.db->now(), true, "it failed"));
  CHECK(x.row().reason == "it failed");
  CHECK(x.row().state == task_state::waiting);
  t = ticket_of(x.w.claim_one());
  REQUIRE(x.w.begin(t));
  CHECK(x.row().reason == "it failed");
  CHECK(x.w.retry(t, 0s));  // the next point is not over
  CHECK(x.row().reason == "it failed");
  x.db->pass(1s);
  t = ticket_of(x.w.claim_one());
  REQUIRE(x.w.begin(t));
  CHECK(x.pass(t, x.db->now()));
  CHECK(x.row().reason.empty());
}

TEST_CASE("a task without another point ends as other tasks do") {
  in_use x;
  CHECK(x.pass(x.running(), std::nullopt));
  CHECK(x.count() == 0);
  const ticket t = x.running();
  CHECK(x.pass(t, std::nullopt, true, "it failed"));
  CHECK(x.row().state == task_state::dead);
  CHECK(x.row().reason == "it failed");
  CHECK(x.row().attempt == 1);
  CHECK(x.tasks->repeat(each_minute()) != t.id);  // the dead one is not in the way
}

TEST_CASE("a task that is cancelled during a run ends with it; one that is not running ends at once") {
  in_use x;
  ticket t = x.running();
  CHECK_FALSE(x.tasks->cancel("default", "k"));
  const turn_result done =
      x.w.take({.passed = {{t, zoned_point{x.db->now() + 1min}, false, ""}}, .watched = {t}});
  CHECK(done.passed == std::vector{t});
  CHECK(done.removed == std::vector{t});
  CHECK(x.count() == 0);
  t = x.held();
  CHECK(x.tasks->cancel(t.id));
  CHECK_FALSE(x.pass(t, x.db->now()));
  CHECK(x.count() == 0);
  x.tasks->repeat(each_minute());
  CHECK(x.tasks->cancel("default", "k"));
  CHECK(x.count() == 0);
}

TEST_CASE("a run begins for its point, which the database keeps through retries") {
  in_use x;
  const ticket t = x.held({.key = "k", .when = schedule::every(1s)});
  const task before = x.now();
  const wall_time newer = *before.point + 30s;
  CHECK(x.w.take({.begun = {t}, .points = {{t, {newer}}}}).begun == std::vector{t});
  CHECK(x.now().point == newer);
  CHECK(x.now().due == newer);
  CHECK(x.now().attempt == 1);
  // Repeating it changes nothing.
  CHECK(x.w.take({.begun = {t}, .points = {{t, {newer + 1s}}}}).begun == std::vector{t});
  CHECK(x.now().point == newer);
  CHECK(x.now().attempt == 1);
  CHECK(x.w.retry(t, 0s));
  CHECK(x.now().point == newer);
  CHECK(x.now().due > newer);
  x.db->pass(1s);
  const ticket again = ticket_of(x.w.claim_one());
  const task held = x.now();
  CHECK(x.w.take({.begun = {again}, .points = {{again, {*held.point}}}}).begun == std::vector{again});
  CHECK(x.now().due == held.due);
  CHECK(x.now().point == held.point);
  CHECK(x.now().attempt == 2);
}

TEST_CASE("the offset of a point is kept with it, through claims and runs") {
  in_use x;
  const auto offset = [&] { return x.db->rows().at(0).point_offset; };
  ticket t = x.running();
  const wall_time point = x.db->now() - 1h;
  CHECK(x.pass(t, zoned_point{point, -3600s}));
  CHECK(offset() == -3600);
  claim c = x.w.claim_one();
  CHECK(c.point_offset == -3600s);
  const auto adopted = x.w.take({.adopt = true}).claimed;
  REQUIRE(adopted.size() == 1);
  CHECK(adopted[0].point_offset == -3600s);
  t = ticket_of(c);
  CHECK(x.w.take({.begun = {t}, .points = {{t, {point, 0s}}}}).begun ==
        std::vector{t});  // by other zone data
  CHECK(x.now().due == point);
  CHECK(offset() == 0);
  x.w.take({.begun = {t}, .points = {{t, {point, 60s}}}});  // repeated
  CHECK(offset() == 0);
  CHECK(x.w.retry(t, -1s));
  x.db->pass(1s);
  c = x.w.claim_one();
  CHECK(c.point_offset == 0s);
  t = ticket_of(c);
  CHECK(x.w.take({.begun = {t}, .points = {{t, {point + 1s, 20'700s}}}}).begun == std::vector{t});
  CHECK(offset() == 20'700);
  x.db->pass(31s);
  CHECK(x.w.claim_up_to(1).at(0).point_offset == 20'700s);  // the lease has run out
  t.fence = x.now().fence;
  CHECK(x.pass(t, x.db->now()));
  CHECK_FALSE(offset());
  CHECK_FALSE(x.w.claim_one().point_offset);
}

TEST_CASE("a run that does not begin leaves the task the offset of its point") {
  in_use x;
  const ticket t = x.held();
  const wall_time point = *x.now().point;
  x.tasks->pause("default");
  CHECK(x.w.take({.begun = {t}, .points = {{t, {point, 60s}}}}).early == std::vector{t});
  CHECK_FALSE(x.db->rows().at(0).point_offset);
}

TEST_CASE(
    "a run that does not begin, because it is not due or its queue is paused, leaves the task its point") {
  for (const bool paused : {false, true}) {
    in_use x;
    const ticket t = x.held();
    const task before = x.now();
    if (paused) x.tasks->pause("default");
    const wall_time other = paused ? *before.point + 1s : x.db->now() + 1min;
    const turn_result done = x.w.take({.begun = {t}, .points = {{t, {other}}}});
    CHECK(done.begun.empty());
    CHECK(done.early == std::vector{t});
    CHECK(x.now().attempt == 0);
    CHECK(x.now().point == before.point);
    CHECK(x.now().due == before.due);
  }
}

TEST_CASE("runs of several tasks begin together, each for its own point, if it has one") {
  in_use x;
  x.tasks->repeat({.key = "a", .when = schedule::every(1s)});
  x.tasks->submit_after(1s, {.key = "b"});
  x.tasks->repeat({.key = "c", .when = schedule::every(1s)});
  x.db->pass(2s);
  std::vector<ticket> all;
  for (const claim& c : x.w.claim_up_to(10)) all.push_back(ticket_of(c));
  REQUIRE(all.size() == 3);
  const wall_time a = *x.tasks->find("default", "a")->point, c = *x.tasks->find("default", "c")->point + 1ms;
  const auto id_of = [&](const char* key) { return x.tasks->find("default", key)->id; };
  turn what{.begun = all};
  for (const ticket& t : all) {
    if (t.id == id_of("a")) what.points.push_back({t, {a}});
    if (t.id == id_of("c")) what.points.push_back({t, {c}});
  }
  CHECK(x.w.take(what).begun.size() == 3);
  CHECK(x.tasks->find("default", "a")->point == a);
  CHECK_FALSE(x.tasks->find("default", "b")->point);
  CHECK(x.tasks->find("default", "c")->point == c);
}

TEST_CASE("when the lease of the last attempt runs out, a repeated task is claimed again and is not dead") {
  in_use x;
  x.tasks->repeat(each_minute());
  for (int n = 1; n <= 3; ++n) {
    x.db->pass(1h);
    REQUIRE(x.w.begin(ticket_of(x.w.claim_one())));
  }
  x.db->pass(1h);
  const turn_result done = x.w.take({.claim_up_to = 10});
  CHECK(done.expired.empty());
  REQUIRE(done.claimed.size() == 1);
  CHECK(done.claimed[0].what.attempt == 3);
  CHECK(done.claimed[0].schedule == "every 1min");
}

TEST_CASE("claims are adopted with their schedules") {
  in_use x;
  const ticket t = x.held({.key = "k", .when = schedule::every(1min), .missed = missed_points::skip});
  const auto adopted = x.w.take({.adopt = true}).claimed;
  REQUIRE(adopted.size() == 1);
  CHECK(ticket_of(adopted[0]) == t);
  CHECK(adopted[0].what.point == x.now().point);
  CHECK(adopted[0].schedule == "every 1min");
  CHECK(adopted[0].missed == missed_points::skip);
}

TEST_CASE("whoever holds a task that is declared anew must claim it anew") {
  in_use x;
  const ticket t = x.held();
  x.tasks->repeat(each_minute("new"));
  CHECK_FALSE(x.w.begin(t));
  CHECK_FALSE(x.pass(t, x.db->now()));
  CHECK(x.w.claim_up_to(1).empty());
  x.db->pass(1min);
  CHECK(x.w.claim_one().what.payload == "new");
}

TEST_CASE("a run during which its task is declared anew is the last of the old contents, however it ends") {
  const std::vector<std::function<void(in_use&, ticket)>> ends{
      [](in_use& x, ticket t) { CHECK(x.pass(t, x.db->now() + 1s)); },
      [](in_use& x, ticket t) { CHECK(x.pass(t, x.db->now() + 1s, true, "it failed")); },
      [](in_use& x, ticket t) { CHECK(x.pass(t, std::nullopt)); },
      [](in_use& x, ticket t) { CHECK(x.w.retry(t, 1s)); },
      [](in_use& x, ticket t) {
        CHECK(x.w.take({.failed = {{.of = t, .retry_after = 1s, .reason = "", .counts = false}}}).failed ==
              std::vector{t});
      },
      [](in_use& x, ticket t) { x.w.unstart(t); },
  };
  for (std::size_t n = 0; n != ends.size(); ++n) {
    CAPTURE(n);
    in_use x;
    const ticket t = x.running();
    CHECK(x.tasks->repeat({.key = "k", .payload = "new", .when = schedule::every(1h)}) == t.id);
    CHECK(x.row().state == task_state::running);
    CHECK(x.w.renew(t));
    CHECK(x.w.take({.begun = {t}, .points = {{t, {x.db->now() - 1h}}}}).begun == std::vector{t});  // repeated
    const wall_time point = *x.now().point;
    CHECK(point > x.db->now() + 59min);
    ends[n](x, t);
    CHECK(x.row().state == task_state::waiting);
    CHECK(x.now().point == point);
    CHECK(x.now().due == point);
    CHECK(x.now().attempt == 0);
    CHECK(x.count() == 1);
    CHECK(x.w.claim_up_to(1).empty());
    x.db->pass(1h);
    const claim c = x.w.claim_one();
    CHECK(c.what.payload == "new");
    CHECK(c.schedule == "every 1h");
  }
}

TEST_CASE(
    "however the run ends during which a task is declared anew, its lane does not wait for the new point") {
  const std::vector<std::function<void(in_use&, ticket)>> ends{
      [](in_use& x, ticket t) { CHECK(x.pass(t, x.db->now() + 1s)); },
      [](in_use& x, ticket t) { CHECK(x.w.retry(t, 1s)); },
      [](in_use& x, ticket t) { x.w.unstart(t); },
      [](in_use& x, ticket) { x.db->pass(31s); },
  };
  for (std::size_t n = 0; n != ends.size(); ++n) {
    CAPTURE(n);
    in_use x;
    const ticket t = x.running({.key = "k", .when = schedule::every(1min), .lane = "l"});
    const auto behind = x.tasks->submit_after(0s, {.lane = "l"});
    x.tasks->repeat({.key = "k", .when = schedule::every(1h), .lane = "l"});
    CHECK(x.w.claim_up_to(10).empty());  // until the run ends
    ends[n](x, t);
    std::vector<std::int64_t> claimed;
    for (int i = 0; i != 2; ++i)
      for (const claim& c : x.w.claim_up_to(10)) claimed.push_back(c.what.id);
    CHECK(std::ranges::count(claimed, behind) == 1);
    CHECK(x.db->wrong() == "");
  }
}

TEST_CASE("a task that is declared anew during a run whose process dies waits for its new point") {
  in_use x;
  x.running();
  x.tasks->repeat({.key = "k", .when = schedule::every(1h)});
  x.db->pass(31s);
  const claim c = x.w.claim_one();  // the lease has run out
  CHECK(c.remaining > 55min);
  CHECK_FALSE(x.w.begin(ticket_of(c)));
}

TEST_CASE("a repeated task can be paused, moved and found as others can, and moving it leaves its point") {
  in_use x;
  const std::int64_t id = x.tasks->repeat(each_minute());
  const auto point = x.now().point;
  CHECK(x.tasks->reschedule_after("default", "k", 0s));
  CHECK(x.now().point == point);
  CHECK(x.now().due < *point);
  x.tasks->pause("default");
  CHECK(x.w.claim_up_to(1).empty());
  x.tasks->resume("default");
  const claim c = x.w.claim_one();
  CHECK(c.what.id == id);
  CHECK(c.what.point == point);
  CHECK(x.row().state == task_state::held);
  CHECK(x.w.take({.begun = {ticket_of(c)}, .points = {{ticket_of(c), {*point}}}}).begun.size() == 1);
  CHECK(x.now().due < *point);
}

#ifdef RONDO_DURABLE_CALENDAR
TEST_CASE("a declaration keeps the offset of the first point, also during a run of other contents") {
  const auto in = [](const char* zone) {
    return repeated{.key = "k", .when = schedule::cron("0 9 * * *", zone)};
  };
  in_use x;
  const auto offset = [&] { return x.db->rows().at(0).point_offset; };
  x.tasks->repeat(in("Asia/Kolkata"));
  CHECK(offset() == 19'800);
  x.tasks->repeat(in("UTC"));
  CHECK(offset() == 0);
  x.tasks->repeat(each_minute());
  CHECK_FALSE(offset());
  x.db->pass(1min);
  const ticket t = ticket_of(x.w.claim_one());
  REQUIRE(x.w.begin(t));
  x.tasks->repeat(in("Asia/Kolkata"));
  CHECK(offset() == 19'800);
  const wall_time point = *x.now().point;
  CHECK(x.pass(t, zoned_point{x.db->now(), 60s}));
  CHECK(x.now().point == point);
  CHECK(offset() == 19'800);
}
#endif

}  // namespace durable_repeat
