// Repeated tasks that are declared again with another lane. The same tests run for each engine.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/database.hpp"

namespace durable_repeated_lanes {

using namespace durable_test;
using rondo::durable::repeated;
using rondo::durable::schedule;
using ids = std::vector<std::int64_t>;

/// A database with a repeated task.
struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db};

  static repeated each_minute(const std::string& lane) {
    return {.key = "k", .when = schedule::every(1min), .lane = lane};
  }
  static repeated each_hour(const std::string& lane) {
    return {.key = "k", .when = schedule::every(1h), .lane = lane};
  }
  ticket running_in(const std::string& lane) {
    tasks->repeat(each_minute(lane));
    db->pass(1min);
    const ticket t = ticket_of(w.claim_one());
    REQUIRE(w.begin(t));
    return t;
  }
  std::int64_t submit(const std::string& lane) const { return tasks->submit_after(0s, {.lane = lane}); }
  /// Without the repeated task, which is claimed at once when its lease has run out. (Only then the next of its lane is.)
  ids claimed() {
    ids all;
    for (int i = 0; i != 2; ++i)
      for (const claim& c : w.claim_up_to(10))
        if (c.what.id != repeated_id()) all.push_back(c.what.id);
    return all;
  }
  row repeated_row() { return db->rows().at(0); }
  std::int64_t repeated_id() { return repeated_row().id; }
  std::string lane() { return repeated_row().lane; }
};

using ending = std::pair<std::string, std::function<void(in_use&, ticket)>>;
const std::vector<ending> endings{
    {"pass",
     [](in_use& x, ticket t) {
       x.w.take({.passed = {{t, rondo::detail::zoned_point{x.db->now() + 1s}, false, ""}}});
     }},
    {"give its point up",
     [](in_use& x, ticket t) {
       x.w.take({.passed = {{t, rondo::detail::zoned_point{x.db->now() + 1s}, true, "no use"}}});
     }},
    {"fail", [](in_use& x, ticket t) { CHECK(x.w.retry(t, 1s)); }},
    {"unstart", [](in_use& x, ticket t) { x.w.unstart(t); }},
    {"die", [](in_use& x, ticket) { x.db->pass(31s); }},
};

TEST_CASE(
    "a repeated task that is declared with another lane during its run keeps its lane until that ends") {
  for (const ending& each : endings)
    for (const std::string next : {"b", ""}) {
      const auto& how = each.first;
      const auto& end = each.second;
      CAPTURE(how);
      CAPTURE(next);
      in_use x;
      const ticket t = x.running_in("a");
      const auto behind = x.submit("a");
      x.tasks->repeat(x.each_hour(next));
      CHECK(x.claimed().empty());
      CHECK(x.lane() == "a");
      const auto in_b = x.submit("b");  // which does not wait for that run
      CHECK(x.claimed() == ids{in_b});
      CHECK(x.tasks->cancel(in_b));
      CHECK(x.w.renew(t));
      CHECK(x.db->wrong() == "");
      end(x, t);
      CHECK(x.claimed() == ids{behind});
      CHECK(x.lane() == next);
      CHECK(x.db->wrong() == "");
    }
}

TEST_CASE("when its run has ended, a task has the place of its new point in its new lane") {
  for (const ending& each : endings) {
    const auto& how = each.first;
    const auto& end = each.second;
    CAPTURE(how);
    in_use x;
    const ticket t = x.running_in("a");
    x.tasks->repeat(x.each_hour("b"));
    end(x, t);
    const auto before = x.tasks->submit_after(30min, {.lane = "b"});
    const auto after = x.tasks->submit_after(2h, {.lane = "b"});
    x.db->pass(3h);
    for (const auto next : {before, t.id, after}) {
      std::optional<ticket> begun;
      for (const claim& c : x.w.claim_up_to(10)) {
        CHECK(c.in_lane);
        if (!x.w.begin(ticket_of(c)))
          x.w.give_back(ticket_of(c));
        else
          begun = ticket_of(c);
      }
      REQUIRE(begun);
      CHECK(begun->id == next);
      CHECK(x.claimed().empty());
      CHECK(x.db->wrong() == "");
      CHECK(x.w.finish(*begun));
    }
  }
}

TEST_CASE("the last declaration during a run decides about the lane") {
  using lanes = std::vector<std::string>;
  for (const lanes& declared :
       {lanes{"b", "c"}, lanes{"b", ""}, lanes{"", "b"}, lanes{"b", "a"}, lanes{"", "a"}})
    for (const ending& each : endings) {
      const auto& how = each.first;
      const auto& end = each.second;
      CAPTURE(how);
      CAPTURE(declared[0]);
      CAPTURE(declared[1]);
      in_use x;
      const ticket t = x.running_in("a");
      const auto behind = x.submit("a");
      for (const std::string& lane : declared) {
        x.tasks->repeat(x.each_hour(lane));
        const auto once = x.repeated_row();
        CHECK(x.tasks->repeat(x.each_hour(lane)) == t.id);  // an equal one changes nothing
        CHECK(x.repeated_row() == once);
        CHECK(x.lane() == "a");
        CHECK(x.claimed().empty());
      }
      end(x, t);
      CHECK(x.claimed() == ids{behind});
      CHECK(x.lane() == declared[1]);
      CHECK(x.db->wrong() == "");
    }
}

TEST_CASE("a run that is in no lane is in none to its end, whatever its task is declared with") {
  for (const ending& each : endings) {
    const auto& how = each.first;
    const auto& end = each.second;
    CAPTURE(how);
    in_use x;
    const ticket t = x.running_in("");
    x.tasks->repeat(x.each_hour("b"));
    const auto in_b = x.submit("b");
    CHECK(x.claimed() == ids{in_b});
    CHECK(x.db->wrong() == "");
    CHECK(x.tasks->cancel(in_b));
    end(x, t);
    CHECK(x.claimed().empty());
    CHECK(x.lane() == "b");
    CHECK(x.db->wrong() == "");
  }
}

TEST_CASE(
    "a task that dies or is cancelled after it was declared with another lane lets the next one of its old "
    "lane run") {
  for (const bool dies : {true, false}) {
    in_use x;
    const ticket t = x.running_in("a");
    const auto behind = x.submit("a");
    x.tasks->repeat(x.each_hour("b"));
    if (dies) {
      CHECK(x.w.give_up(t, "no use"));
      CHECK(x.lane() == "b");
    } else {
      CHECK_FALSE(x.tasks->cancel(t.id));
      CHECK(x.claimed().empty());
      CHECK(x.w.finish(t));
      CHECK(x.db->rows().size() == 1);
    }
    CHECK(ids_of(x.w.claim_up_to(10)) == ids{behind});
    CHECK(x.db->wrong() == "");
    if (!dies) continue;
    CHECK(x.tasks->retry(t.id));
    CHECK(x.claimed().empty());
    CHECK(x.lane() == "b");
    CHECK(x.db->wrong() == "");
  }
}

}  // namespace durable_repeated_lanes
