// The simulated database: transactions that are left at a stage or nested, crashes, and histories that go back.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/microseconds.hpp"
#include "durable/simulated_database.hpp"
#include "durable/store_access.hpp"

// What becomes of a transaction that is left at one of its stages, of two of which one is inside the other, and of what
// a crash may undo.
namespace durable_simulated_stages {

using namespace durable_test;
using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::ticket;
using rondo::durable::store_error;
using ids = std::vector<std::int64_t>;

constexpr stage each_stage[] = {stage::begins, stage::statement, stage::commits, stage::committed};

struct broken {};

struct in_use {
  rondo::durable::wall_time now{std::chrono::hours(500'000)};
  simulated_database db;
  std::shared_ptr<detail::engine> engine = db.open();
  std::unique_ptr<rondo::durable::store> tasks = detail::store_access::make(engine);
  std::unique_ptr<detail::session> a = connect("a"), b = connect("b");

  explicit in_use(locking how) : db([this] { return now; }, how) {}

  std::unique_ptr<detail::session> connect(const std::string& owner) const {
    return engine->connect(owner, {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  }
  /// Does something the next time that a transaction of the owner reaches a stage.
  void at(const std::string& owner, stage where, std::function<void()> then) {
    db.observe([owner, where, then, done = false](const std::string& who, stage s) mutable {
      if (who != owner || s != where || std::exchange(done, true)) return;
      then();
    });
  }
  static ids claimed(const detail::turn_result& by) {
    ids all;
    for (const detail::claim& c : by.claimed) all.push_back(c.what.id);
    return all;
  }
  ids claim(detail::session& with) const { return claimed(with.take({.claim_up_to = 10})); }
  ticket held(detail::session& with) const {
    tasks->submit_after(0s, {});
    const auto done = with.take({.claim_up_to = 1});
    return {done.claimed.at(0).what.id, done.claimed.at(0).what.fence};
  }
};

constexpr locking each_locking[] = {locking::rows, locking::database};

TEST_CASE(
    "simulated: a call of a store that is left before its commit has done nothing; after it, everything") {
  for (const locking how : each_locking)
    for (const stage where : each_stage) {
      in_use x(how);
      x.at("", where, [] { throw broken(); });
      CHECK_THROWS_AS(x.tasks->submit_after(0s, {.key = "k"}), broken);
      CHECK(x.db.rows().size() == (where == stage::committed ? 1 : 0));
      CHECK(x.claim(*x.a).size() == x.db.rows().size());
    }
}

TEST_CASE("simulated: a turn that is left before its commit has done nothing; after it, everything") {
  for (const locking how : each_locking)
    for (const stage where : each_stage) {
      in_use x(how);
      const ticket run = x.held(*x.a);
      x.a->take({.begun = {run}});
      const auto id = x.tasks->submit_after(0s, {});
      x.at("a", where, [] { throw store_error("broken", true); });
      CHECK_THROWS_AS(x.a->take({.finished = {run}, .claim_up_to = 10}), store_error);
      const bool done = where == stage::committed;
      CHECK(x.db.rows().size() == (done ? 1 : 2));
      CHECK(x.claim(*x.b) == (done ? ids{} : ids{id}));
      CHECK(x.claimed(x.a->take({.adopt = true})) == (done ? ids{id} : ids{}));
    }
}

TEST_CASE("simulated: each statement of a turn is a stage, and the time is that of its beginning") {
  in_use x(locking::rows);
  const ticket t = x.held(*x.a);
  std::string told;
  x.db.observe([&](const std::string& who, stage s) {
    told += who + "bscd"[static_cast<int>(s)];
    x.now += 1s;
  });
  x.a->take({.begun = {t}, .watched = {t}, .claim_up_to = 1});
  CHECK(told == "abasasasacad");
  CHECK(x.db.rows().at(0).lease_until == detail::microseconds_of(x.now - 5s + 30s));
}

TEST_CASE(
    "simulated, rows: what an open transaction has changed is skipped by turns, and is in the way of "
    "stores") {
  in_use x(locking::rows);
  const auto mine = x.tasks->submit_after(0s, {.key = "k"});
  bool was_inside = false;
  x.at("a", stage::commits, [&] {
    was_inside = true;
    const auto theirs = x.tasks->submit_after(0s, {});
    CHECK(x.claim(*x.b) == ids{theirs});
    CHECK(x.tasks->find(mine)->fence == 0);
    CHECK_THROWS_AS(x.tasks->cancel(mine), store_error);
    CHECK_THROWS_AS(x.tasks->cancel("default", "k"), store_error);
    CHECK_THROWS_AS(x.tasks->submit_after(0s, {.key = "k"}), store_error);
    CHECK_THROWS_AS(x.tasks->reschedule_after(mine, 1h), store_error);
  });
  CHECK(x.claim(*x.a) == ids{mine});
  CHECK(was_inside);
  CHECK(x.db.rows().size() == 2);
  CHECK(x.tasks->cancel(mine));
}

TEST_CASE("simulated, rows: a turn says which tickets another transaction keeps from it") {
  in_use x(locking::rows);
  const ticket run = x.held(*x.a), held = x.held(*x.a);
  x.a->take({.begun = {run}});
  const auto turn = [&] { return x.a->take({.finished = {run}, .begun = {held}}); };
  for (const ticket& t : {run, held}) {
    x.at("", stage::commits, [&] {
      const auto done = turn();
      CHECK(done.locked == std::vector{t});
      CHECK(done.finished == (t == run ? std::vector<ticket>{} : std::vector{run}));
      CHECK(done.begun == (t == run ? std::vector{held} : std::vector<ticket>{}));
      throw broken();
    });
    CHECK_THROWS_AS(x.tasks->cancel(t.id), broken);
  }
  CHECK(turn().begun == std::vector{held});
  CHECK(turn().locked.empty());
}

TEST_CASE(
    "simulated, rows: a statement sees what has been committed before it, also within its transaction") {
  in_use x(locking::rows);
  const ticket run = x.held(*x.a);
  x.a->take({.begun = {run}});
  std::int64_t id = 0;
  int statements = 0;
  x.db.observe([&](const std::string& who, stage s) {
    if (who == "a" && s == stage::statement && ++statements == 2) id = x.tasks->submit_after(0s, {});
  });
  const ids claimed = x.claimed(x.a->take({.finished = {run}, .claim_up_to = 10}));
  CHECK(claimed == ids{id});
}

TEST_CASE("simulated, rows: a key that an open transaction adds or removes is not free, and not taken") {
  for (const bool replaces : {false, true}) {
    in_use x(locking::rows);
    if (replaces) x.tasks->submit_after(0s, {.key = "k"});
    x.at("", stage::commits, [&] {
      CHECK_THROWS_AS(x.tasks->submit_after(0s, {.key = "k"}), store_error);
      CHECK(x.tasks->find("default", "k").has_value() == replaces);
    });
    x.tasks->submit_after(0s, {.key = "k", .replace = true});
    CHECK(x.db.rows().size() == 1);
  }
}

TEST_CASE("simulated, rows: two tasks of a lane that are held do not begin at the same time") {
  in_use x(locking::rows);
  const auto in_lane = [&](detail::session& by, rondo::duration since_due) {
    x.tasks->submit_at(x.now - since_due, {.lane = "l"});
    const auto done = by.take({.claim_up_to = 1});
    return ticket{done.claimed.at(0).what.id, done.claimed.at(0).what.fence};
  };
  const ticket first = in_lane(*x.a, 1s), earlier = in_lane(*x.b, 2s);
  bool was_inside = false;
  x.at("b", stage::commits, [&] {
    was_inside = true;
    CHECK(x.a->take({.begun = {first}}).locked == std::vector{first});
  });
  CHECK(x.b->take({.begun = {earlier}}).begun == std::vector{earlier});
  CHECK(was_inside);
  CHECK(x.a->take({.begun = {first}}).early == std::vector{first});

  CHECK(x.b->take({.finished = {earlier}}).finished == std::vector{earlier});
  const ticket earliest = in_lane(*x.b, 3s);
  was_inside = false;
  x.at("a", stage::commits, [&] {
    was_inside = true;
    const auto done = x.b->take({.begun = {earliest}});
    CHECK(done.early.empty());
    CHECK(done.locked == std::vector{earliest});
  });
  CHECK(x.a->take({.returned = {first}}).locked.empty());
  CHECK(was_inside);
  CHECK(x.b->take({.begun = {earliest}}).begun == std::vector{earliest});
}

TEST_CASE("simulated, the database: one transaction may write at a time; others may read") {
  in_use x(locking::database);
  const auto id = x.tasks->submit_after(0s, {});
  for (const std::string outer : {"a", ""}) {
    x.at(outer, stage::commits, [&] {
      CHECK_THROWS_AS(x.b->take({.claim_up_to = 1}), store_error);
      CHECK_THROWS_AS(x.tasks->submit_after(0s, {}), store_error);
      CHECK(x.tasks->find(id)->fence == 0);
      CHECK(x.tasks->list("default").size() == 1);
      throw broken();
    });
    if (outer == "a")
      CHECK_THROWS_AS(x.claim(*x.a), broken);
    else
      CHECK_THROWS_AS(x.tasks->cancel(id), broken);
  }
  CHECK(x.claim(*x.b) == ids{id});
}

TEST_CASE("simulated: a crash undoes the last commits that are not durable, at most as many as it is told") {
  for (const locking how : each_locking)
    for (const std::size_t forget : {0u, 1u, 2u, 3u, 100u}) {
      CAPTURE(forget);
      in_use x(how);
      const ticket t = x.held(*x.a);
      x.a->take({.begun = {t}});
      x.a->take({.failed = {{.of = t, .retry_after = 0s, .reason = ""}}});
      x.db.crash(forget);
      const row left = x.db.rows().at(0);
      CHECK(left.attempt == (forget < 2 ? 1 : 0));
      CHECK(left.state == (forget == 0   ? row_state::waiting
                           : forget == 1 ? row_state::running
                           : forget == 2 || how == locking::rows
                               ? row_state::held  // there, a claim is durable
                               : row_state::waiting));
      x.db.crash(100);
      CHECK(x.db.rows().at(0).state == left.state);  // what was recovered is durable
    }
}

TEST_CASE("simulated: a store's call makes all commits before it durable, if it changes anything") {
  for (const locking how : each_locking)
    for (const bool changes : {true, false}) {
      in_use x(how);
      const ticket t = x.held(*x.a);
      x.a->take({.begun = {t}});
      CHECK_FALSE(x.tasks->cancel(changes ? t.id : 0));
      x.db.crash(100);
      CHECK((x.db.rows().at(0).state == row_state::cancelled) == changes);
      CHECK((x.db.rows().at(0).attempt == 1) == changes);
    }
}

TEST_CASE("simulated: a crash ends open transactions, and their calls throw") {
  for (const locking how : each_locking)
    for (const stage where : each_stage) {
      in_use x(how);
      x.at("", where, [&] { x.db.crash(100); });
      const auto submit = [&] { x.tasks->submit_after(0s, {}); };
      if (where == stage::statement || where == stage::commits)
        CHECK_THROWS_AS(submit(), store_error);
      else
        submit();
      CHECK(x.db.rows().size() == (where == stage::begins || where == stage::committed ? 1 : 0));
    }
}

TEST_CASE("simulated: the crash of a server also undoes the transactions around that in which it happens") {
  in_use x(locking::rows);
  x.tasks->submit_after(0s, {});
  bool is_inside = false;
  bool has_crashed = false;
  x.db.observe([&](const std::string& who, stage s) {
    if (s != stage::commits) return;
    if (who == "a" && !std::exchange(is_inside, true))
      CHECK_THROWS_AS(x.tasks->submit_after(0s, {}), store_error);
    if (who.empty() && !std::exchange(has_crashed, true)) x.db.crash(0);
  });
  CHECK_THROWS_AS(x.claim(*x.a), store_error);
  CHECK(x.db.rows().size() == 1);
  CHECK(x.db.rows()[0].state == row_state::waiting);
}

TEST_CASE(
    "simulated: what a session held when it ended is freed by another one's changed(), with a greater "
    "fence") {
  for (const locking how : each_locking) {
    in_use x(how);
    const ticket run = x.held(*x.a), held = x.held(*x.a);
    x.a->take({.begun = {run}});
    x.b->changed();
    CHECK_FALSE(x.b->changed());
    x.db.end_session("a");
    CHECK(x.claim(*x.b).empty());
    CHECK(x.b->changed());
    CHECK_FALSE(x.b->changed());
    CHECK(x.claim(*x.b) == ids{held.id});
    CHECK(x.db.rows().at(1).fence > held.fence);
    // It was only its connection. But the session cannot know that.
    if (how == locking::rows) CHECK_THROWS_AS(x.a->take({.finished = {run}}), store_error);
    CHECK(x.a->take({.finished = {run}}).finished == std::vector{run});
  }
}

TEST_CASE(
    "simulated: a session that has lost its connection keeps what it holds, if its next turn is soon "
    "enough") {
  for (const locking how : each_locking) {
    in_use x(how);
    const ticket held = x.held(*x.a);
    x.db.end_session("a");
    x.a->take({.claim_up_to = 1});
    x.b->changed();
    CHECK(x.a->take({.begun = {held}}).begun == std::vector{held});
  }
}

TEST_CASE(
    "simulated: after the crash of a server, what seems to be held may be running, and is left to its "
    "lease") {
  in_use x(locking::rows);
  const ticket t = x.held(*x.a);
  x.a->take({.begun = {t}});
  x.db.crash(1);
  CHECK_FALSE(x.b->changed());
  CHECK(x.claim(*x.b).empty());
  x.now += 31s;
  CHECK(x.claim(*x.b) == ids{t.id});
}

TEST_CASE(
    "simulated, rows: wait() tells of what others have done for now, also while there was no connection") {
  in_use x(locking::rows);
  CHECK_FALSE(x.a->wait());
  const auto id = x.tasks->submit_after(1h, {});
  x.tasks->submit_after(0s, {.queue = "other"});
  CHECK_FALSE(x.a->wait());
  x.tasks->reschedule_after(id, 1s);
  CHECK(x.a->wait());
  CHECK_FALSE(x.a->wait());
  x.b->wait();
  const auto done = x.a->take({.claim_up_to = 1});
  x.a->take({.returned = {{id, done.claimed.at(0).what.fence}}});
  CHECK_FALSE(x.a->wait());  // its own
  CHECK(x.b->wait());
  x.at("", stage::commits, [&] { CHECK_FALSE(x.a->wait()); });
  x.tasks->submit_after(0s, {});
  CHECK(x.a->wait());
  x.db.end_session("a");
  x.a->take({});
  CHECK(x.a->wait());
}

TEST_CASE("simulated, the database: changed() tells of what others have changed") {
  in_use x(locking::database);
  CHECK_FALSE(x.a->changed());
  const ticket t = x.held(*x.a);
  CHECK_FALSE(x.a->wait());
  CHECK(x.a->changed());
  x.a->take({.begun = {t}});
  CHECK_FALSE(x.a->changed());
  x.tasks->cancel(0);
  CHECK_FALSE(x.a->changed());
  CHECK(x.b->changed());
}

}  // namespace durable_simulated_stages

// What becomes of sessions and transactions when the history goes back.
namespace durable_simulated_histories {

using namespace durable_test;
using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::ticket;
using rondo::durable::store_error;

struct in_use {
  rondo::durable::wall_time now{std::chrono::hours(500'000)};
  simulated_database db;
  std::shared_ptr<detail::engine> engine = db.open();
  std::unique_ptr<rondo::durable::store> tasks = detail::store_access::make(engine);
  std::unique_ptr<detail::session> a = connect("a"), b = connect("b");

  explicit in_use(locking how) : db([this] { return now; }, how) {}

  std::unique_ptr<detail::session> connect(const std::string& owner) const {
    return engine->connect(owner, {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  }
  static ticket ticket_of(const detail::turn_result& done) {
    return {done.claimed.at(0).what.id, done.claimed.at(0).what.fence};
  }
  void go_back(const simulated_copy& to) {
    now += 1ms;
    db.go_back(to);
  }
  /// Takes the turn in which it says that the history has gone back.
  static void tell(detail::session& s) { CHECK_THROWS_AS(s.take({.adopt = true}), store_error); }
};

constexpr locking each_locking[] = {locking::rows, locking::database};

TEST_CASE(
    "simulated: after the history has gone back, rows, ids and pauses are as they were, and claims are "
    "lost") {
  for (const locking how : each_locking) {
    in_use x(how);
    const auto kept = x.tasks->submit_after(0s, {.payload = "kept"});
    const ticket held = x.ticket_of(x.a->take({.claim_up_to = 1}));
    x.tasks->pause("other");
    const auto then = x.db.copy();
    const auto rows = x.db.rows();
    const auto lost = x.tasks->submit_after(0s, {.payload = "lost"});
    x.tasks->resume("other");
    x.a->take({.begun = {held}});
    x.a->take({.finished = {held}});
    const ticket claimed = x.ticket_of(x.b->take({.claim_up_to = 1}));
    CHECK(claimed.id == lost);
    x.go_back(then);
    CHECK(x.db.rows() == rows);
    CHECK(x.db.paused() == std::set<std::string>{"other"});
    CHECK(x.tasks->submit_after(0s, {.payload = "new"}) == lost);
    for (auto* s : {x.a.get(), x.b.get()}) x.tell(*s);
    CHECK(x.ticket_of(x.a->take({.adopt = true})) == held);
    CHECK(x.b->take({.begun = {claimed}, .adopt = true}).begun.empty());
    CHECK(x.b->take({.watched = {claimed}}).cancelled == std::vector{claimed});
    const auto again = x.b->take({.claim_up_to = 2}).claimed;
    REQUIRE(again.size() == 1);
    CHECK(again[0].what.payload == "new");
    CHECK(again[0].what.fence > claimed.fence);
    CHECK(x.tasks->find(kept).has_value());
  }
}

TEST_CASE(
    "simulated: each session says once that the history has gone back, however often it has to connect") {
  for (const locking how : each_locking) {
    in_use x(how);
    x.go_back(x.db.copy());
    x.a->changed();  // connects
    x.db.end_session("a");
    x.tell(*x.a);
    x.a->take({.adopt = true});
    x.connect("new")->take({.adopt = true});
    x.db.end_session("a");
    x.a->take({.adopt = true});
    x.go_back(x.db.copy());
    x.tell(*x.a);
  }
}

TEST_CASE("simulated: open transactions are undone when the history goes back, and their calls throw") {
  for (const locking how : each_locking) {
    in_use x(how);
    const auto then = x.db.copy();
    x.tasks->submit_after(0s, {});
    x.db.observe([&, done = false](const std::string&, stage s) mutable {
      if (s == stage::commits && !std::exchange(done, true)) x.db.go_back(then);
    });
    CHECK_THROWS_AS(x.tasks->submit_after(0s, {}), store_error);
    CHECK(x.db.rows().empty());
  }
}

TEST_CASE(
    "simulated: where fences repeat, another session may get the fence of a lost claim, and the same one may "
    "not") {
  for (const bool same : {true, false}) {
    in_use x(locking::rows);
    x.db.let_fences_repeat();
    x.tasks->submit_after(0s, {});
    const auto then = x.db.copy();
    const ticket lost = x.ticket_of(x.a->take({.claim_up_to = 1}));
    x.go_back(then);
    detail::session& s = same ? *x.a : *x.b;
    x.tell(s);
    const ticket now = x.ticket_of(s.take({.claim_up_to = 1}));
    CHECK((now == lost) == !same);
    if (!same) x.tell(*x.a);
    CHECK(x.a->take({.begun = {lost}}).begun.empty());
  }
}

}  // namespace durable_simulated_histories
