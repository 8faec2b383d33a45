// Lanes: of single tasks and of repeated ones. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "durable/database.hpp"

// Tasks of a lane run one at a time and in order.
namespace durable_lanes {

using namespace durable_test;
using rondo::durable::planned;
using rondo::durable::submission;
using ids = std::vector<std::int64_t>;

/// A database with two sessions.
struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db, "w"}, other{*db, "other"};

  std::int64_t submit(const std::string& lane, rondo::duration since_due = 1min) const {
    return tasks->submit_at(db->now() - since_due, {.lane = lane});
  }
  ids claim() { return ids_of(w.claim_up_to(100)); }
};

TEST_CASE("lanes: of each lane only the first task is claimed, in the order of due time and id") {
  in_use x;
  const auto due = x.db->now() - 1min;
  const auto second = x.tasks->submit_at(due, {.lane = "a"});
  const auto third = x.tasks->submit_at(due, {.lane = "a"});
  const auto first = x.tasks->submit_at(due - 1s, {.lane = "a"});
  const auto in_b = x.tasks->submit_at(due + 1s, {.lane = "b"});
  const auto in_none = x.tasks->submit_at(due + 2s, {});
  auto claims = x.w.claim_up_to(100);
  CHECK(ids_of(claims) == ids{first, in_b, in_none});
  for (const auto next : {second, third}) {
    CHECK(x.claim().empty());
    CHECK(ids_of(x.other.claim_up_to(100)).empty());
    CHECK(x.w.begin(ticket_of(claims[0])));
    CHECK(x.claim().empty());
    CHECK(x.w.finish(ticket_of(claims[0])));
    claims = x.w.claim_up_to(100);
    CHECK(ids_of(claims) == ids{next});
  }
}

TEST_CASE("lanes: a claim says whether its task is in a lane") {
  in_use x;
  x.submit("a", 2min);
  x.submit("");
  const auto claims = x.w.claim_up_to(2);
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].in_lane);
  CHECK_FALSE(claims[1].in_lane);
  for (const claim& c : x.w.take({.adopt = true}).claimed)
    CHECK(c.in_lane == (c.what.id == claims[0].what.id));
}

TEST_CASE("lanes: the same lane of another queue is another lane; names are compared as bytes") {
  in_use x;
  worker both(*x.db, "both", {.queues = {"p", "q"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  const ids all{x.tasks->submit_after(0s, {.queue = "p", .lane = "a"}),
                x.tasks->submit_after(0s, {.queue = "q", .lane = "a"}),
                x.tasks->submit_after(0s, {.queue = "q", .lane = "A"}),
                x.tasks->submit_after(0s, {.queue = "q", .lane = "ä"})};
  CHECK(both.claim_up_to(100).size() == all.size());
}

TEST_CASE("lanes: a task that is tried again or snoozed keeps its place, and the lane waits for it") {
  for (const bool counts : {true, false}) {
    in_use x;
    const auto first = x.submit("a", 2min), second = x.submit("a");
    const ticket t = ticket_of(x.w.claim_one());
    CHECK(t.id == first);
    CHECK(x.w.begin(t));
    x.w.take({.failed = {{.of = t, .retry_after = 1h, .reason = "", .counts = counts}}});
    CHECK(x.claim().empty());
    CHECK(x.claim().empty());
    x.db->pass(1h);
    CHECK(x.claim() == ids{first});
    CHECK(x.tasks->find(second));
  }
}

TEST_CASE("lanes: whatever ends or removes the first task lets the next one run") {
  using end = std::function<void(in_use&, ticket)>;
  const auto begun = [](const end& then) {
    return [then](in_use& x, ticket t) {
      CHECK(x.w.begin(t));
      CHECK(x.claim().empty());
      then(x, t);
    };
  };
  const std::vector<std::pair<std::string, end>> ends{
      {"finish", begun([](in_use& x, ticket t) { CHECK(x.w.finish(t)); })},
      {"give up", begun([](in_use& x, ticket t) { CHECK(x.w.give_up(t, "no use")); })},
      {"cancel, and finish", begun([](in_use& x, ticket t) {
         CHECK_FALSE(x.tasks->cancel(t.id));
         CHECK(x.claim().empty());
         CHECK(x.w.finish(t));
       })},
      {"cancel, and fail", begun([](in_use& x, ticket t) {
         CHECK_FALSE(x.tasks->cancel(t.id));
         CHECK(x.w.retry(t, 0s));
       })},
      {"cancel, and put back", begun([](in_use& x, ticket t) {
         CHECK_FALSE(x.tasks->cancel(t.id));
         x.w.unstart(t);
       })},
      {"cancel", [](in_use& x, ticket t) { CHECK(x.tasks->cancel(t.id)); }},
      {"cancel once it waits again",
       [](in_use& x, ticket t) {
         x.w.give_back(t);
         CHECK(x.tasks->cancel(t.id));
       }},
      {"move", [](in_use& x, ticket t) { CHECK(x.tasks->reschedule_after(t.id, 1h)); }},
  };
  for (const auto& each : ends) {
    CAPTURE(each.first);
    in_use x;
    const auto first = x.submit("a", 2min), second = x.submit("a");
    x.submit("a");
    const ticket t = ticket_of(x.w.claim_one());
    REQUIRE(t.id == first);
    CHECK(x.claim().empty());
    each.second(x, t);
    CHECK(x.claim() == ids{second});
  }
}

TEST_CASE("lanes: a task that is given back or put back is first again") {
  in_use x;
  const auto first = x.submit("a", 2min);
  x.submit("a");
  ticket t = ticket_of(x.w.claim_one());
  x.w.give_back(t);
  t = ticket_of(x.w.claim_one());
  CHECK(t.id == first);
  CHECK(x.w.begin(t));
  x.w.unstart(t);
  CHECK(x.claim() == ids{first});
}

TEST_CASE("lanes: a task submitted before one that is held runs first, without waiting for that") {
  in_use x;
  x.submit("a");
  const ticket held = ticket_of(x.w.claim_one());
  const auto earlier = x.submit("a", 2min);
  const ticket t = ticket_of(x.other.claim_one());
  CHECK(t.id == earlier);
  for (const bool runs : {false, true}) {
    if (runs) CHECK(x.other.begin(t));
    const auto answer = x.w.take({.begun = {held}});
    CHECK(answer.begun.empty());
    CHECK(answer.early == std::vector{held});
  }
  CHECK(x.other.finish(t));
  CHECK(x.w.begin(held));
}

TEST_CASE("lanes: of two tasks that are held, the first may begin") {
  in_use x;
  x.submit("a");
  const ticket later = ticket_of(x.w.claim_one());
  x.submit("a", 2min);
  const ticket first = ticket_of(x.w.claim_one());
  const auto answer = x.w.take({.begun = {later, first}});
  CHECK(answer.begun == std::vector{first});
  CHECK(answer.early == std::vector{later});
}

TEST_CASE("lanes: a task submitted before one that runs is next, and before others that wait") {
  in_use x;
  const auto running = x.submit("a");
  const auto last = x.submit("a", 30s);
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(t.id == running);
  CHECK(x.w.begin(t));
  const auto earlier = x.submit("a", 2min);
  CHECK(x.claim().empty());
  CHECK(x.w.finish(t));
  CHECK(x.claim() == ids{earlier});
  CHECK(x.tasks->cancel(earlier));
  CHECK(x.claim() == ids{last});
}

TEST_CASE("lanes: a run that fails lets one go first that was submitted before it in the meantime") {
  in_use x;
  const auto later = x.submit("a");
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(x.w.begin(t));
  const auto earlier = x.submit("a", 2min);
  CHECK(x.claim().empty());
  CHECK(x.w.retry(t, 0s));
  const ticket next = ticket_of(x.w.claim_one());
  CHECK(next.id == earlier);
  CHECK(x.w.begin(next));
  CHECK(x.w.finish(next));
  CHECK(x.claim() == ids{later});
}

TEST_CASE("lanes: a task that is moved takes the place of its new due time") {
  in_use x;
  const auto a = x.tasks->submit_after(1min, {.lane = "a"});
  const auto b = x.tasks->submit_after(2min, {.key = "b", .lane = "a"});
  const auto c = x.tasks->submit_after(3min, {.lane = "a"});
  CHECK(x.tasks->reschedule_after(c, 0s));
  CHECK(x.tasks->reschedule_after("default", "b", 1s));
  x.db->pass(1h);
  for (const auto next : {c, b, a}) {
    const ticket t = ticket_of(x.w.claim_one());
    CHECK(t.id == next);
    CHECK(x.w.begin(t));
    CHECK(x.w.finish(t));
  }
}

TEST_CASE("lanes: a dead task that is revived takes the place of that moment") {
  in_use x;
  const auto dead = x.submit("a", 2min);
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(x.w.begin(t));
  CHECK(x.w.give_up(t, "no use"));
  const auto next = x.submit("a");
  CHECK(x.tasks->retry(dead));
  const ticket n = ticket_of(x.w.claim_one());
  CHECK(n.id == next);
  CHECK(x.w.begin(n));
  CHECK(x.w.finish(n));
  CHECK(x.claim() == ids{dead});
}

TEST_CASE("lanes: a key can be replaced, and the new task has the place of its own due time") {
  in_use x;
  x.tasks->submit_at(x.db->now() - 2min, {.key = "k", .lane = "a"});
  const auto second = x.submit("a");
  const ticket held = ticket_of(x.w.claim_one());
  CHECK(x.claim().empty());
  const auto replaced = x.tasks->submit_after(0s, {.key = "k", .replace = true, .lane = "a"});
  CHECK_FALSE(x.w.begin(held));
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(t.id == second);
  CHECK(x.w.begin(t));
  CHECK(x.w.finish(t));
  CHECK(x.claim() == ids{replaced});
}

TEST_CASE("lanes: when a lease runs out, the task is claimed again, and is dead after its last attempt") {
  in_use x;
  const auto first = x.submit("a", 2min), second = x.submit("a");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const ticket t = ticket_of(x.w.claim_one());
    CHECK(t.id == first);
    CHECK(x.w.begin(t));
    CHECK(x.claim().empty());
    x.db->pass(31s);
  }
  ids expired, claimed;
  for (bool more = true; more;) {
    const auto done = x.other.take({.claim_up_to = 100});
    for (const auto& t : done.expired) expired.push_back(t.id);
    for (const claim& c : done.claimed) claimed.push_back(c.what.id);
    more = done.may_have_more;
  }
  CHECK(expired == ids{first});
  CHECK(claimed == ids{second});
}

TEST_CASE("lanes: many tasks that wait behind one keep no others from being claimed, and are passed once") {
  in_use x;
  std::vector<planned> crowd;
  for (int i = 0; i != 50; ++i) crowd.push_back({.what = {.lane = "a"}, .when = x.db->now() - 1min});
  const auto all = x.tasks->submit_all(crowd);
  const auto in_b = x.submit("b", 10s);
  ids claimed;
  int claims = 0;
  for (bool more = true; more; ++claims) {
    const auto done = x.w.take({.claim_up_to = 5});
    for (const claim& c : done.claimed) claimed.push_back(c.what.id);
    more = done.may_have_more;
    REQUIRE(claims < 20);
  }
  CHECK(claimed == ids{all[0], in_b});
  CHECK_FALSE(x.w.take({.claim_up_to = 5}).may_have_more);
}

TEST_CASE("lanes: tasks can be submitted in lists, with keys and with long payloads") {
  in_use x;
  const auto due = x.db->now() - 1min;
  std::vector<planned> list;
  for (int i = 0; i != 120; ++i) list.push_back({.what = {.lane = i % 2 == 0 ? "a" : "b"}, .when = due});
  list.push_back({.what = {.payload = std::string(1000, 'x'), .lane = "a"}, .when = due - 1s});
  list.push_back({.what = {.key = "k", .lane = "b"}, .when = due - 1s});
  const auto made = x.tasks->submit_all(list);
  CHECK(x.claim() == ids{made[120], made[121]});
  CHECK(x.claim().empty());
}

TEST_CASE("lanes: what a lane cannot be is refused, with the value, and nothing is submitted") {
  in_use x;
  const auto refused = [&](const std::string& lane, const std::string& why) {
    CHECK_THROWS_WITH_AS(x.tasks->submit_after(0s, {.lane = lane}), ("rondo: the lane " + why).c_str(),
                         std::invalid_argument);
  };
  refused(std::string("a\0b", 3), "\"a\\x00b\" contains a zero byte");
  refused("\xff", "\"\\xff\" is not UTF-8");
  refused(std::string(256, 'x'),
          "\"" + std::string(80, 'x') + "...\" has 256 bytes; at most 255 are allowed");
  CHECK(x.db->rows().empty());
  CHECK(x.tasks->submit_after(0s, {.lane = std::string(255, 'x')}) > 0);
}

/// Submits, claims, runs, fails, cancels and moves at random, in few lanes, and checks each step.
class random_program {
 public:
  random_program(database& on, unsigned seed) : random_(seed), db_(on) {}

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        submitted_.push_back(
            tasks_->submit_at(db_.now() + std::chrono::milliseconds(static_cast<int>(below(9000)) - 6000),
                              {.lane = std::string(1, static_cast<char>('a' + below(3)))}));
        break;
      case 3:
      case 4:
        claim(below(4) + 1);
        break;
      case 5:
      case 6:
        begin();
        break;
      case 7:
        end();
        break;
      case 8:
        change();
        break;
      default:
        db_.pass(std::chrono::milliseconds(below(1000)));
    }
    check();
  }

  /// Runs what is left. Fails if anything stays for ever.
  void run_out() {
    for (int i = 0; i != 1000 && left() != 0; ++i) {
      db_.pass(2s);  // which moves places too, with a server: what was set aside is not, for the next claim
      claim(100);
      while (!held_.empty()) begin();
      while (!running_.empty()) finish(0);
      check();
    }
    CHECK(left() == 0);
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  std::ptrdiff_t left() { return std::ranges::count_if(db_.rows(), &row::lives); }
  worker& any() { return below(2) == 0 ? one_ : other_; }

  void claim(std::size_t most) {
    worker& by = any();
    for (const auto& c : by.claim_up_to(most)) held_.emplace_back(&by, ticket_of(c));
  }
  void begin() {
    if (held_.empty()) return;
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(below(held_.size()));
    const auto [by, t] = *at;
    held_.erase(at);
    if (by->begin(t))
      running_.emplace_back(by, t);
    else
      by->give_back(t);
  }
  void finish(std::size_t n) {
    running_[n].first->finish(running_[n].second);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(n));
  }
  void end() {
    if (running_.empty()) return;
    const std::size_t n = below(running_.size());
    const auto [by, t] = running_[n];
    if (const auto how = below(4); how == 0)
      by->retry(t, std::chrono::milliseconds(below(2000)));
    else if (how == 1)
      by->give_up(t, "");
    else if (how == 2)
      by->unstart(t);
    else
      return finish(n);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(n));
  }
  void change() {
    if (submitted_.empty()) return;
    const auto id = submitted_[below(submitted_.size())];
    if (const auto how = below(4); how == 0)
      tasks_->cancel(id);
    else if (how == 1)
      tasks_->retry(id);
    else
      tasks_->reschedule_after(id, std::chrono::milliseconds(below(3000)));
  }

  void check() {
    std::set<std::string> running;
    for (const row& r : db_.rows()) {
      CHECK(r.place.has_value() == r.lives());
      if (r.runs()) CHECK(running.insert(r.lane).second);
    }
    CHECK(db_.wrong() == "");
  }

  std::mt19937 random_;
  database& db_;
  std::unique_ptr<rondo::durable::store> tasks_ = db_.open_store();
  worker one_{db_, "one"}, other_{db_, "other"};
  ids submitted_;
  std::vector<std::pair<worker*, ticket>> held_, running_;
};

TEST_CASE(
    "lanes: whatever happens in whatever order, one task of a lane runs at a time, and none is forgotten") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const auto db = new_database();
    random_program p(*db, seed);
    for (int i = 0; i != 250; ++i) p.step();
    p.run_out();
  }
}

}  // namespace durable_lanes

// Repeated tasks that are declared again with another lane.
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
