// Rows, tables and lanes that somebody's open transaction has locked, and several sessions that claim at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rondo/timer.hpp>

#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_locks {

using namespace durable_test;
using rondo::durable::dispatcher;
using rondo::durable::dispatcher_options;
using rondo::durable::store_error;
using rondo::durable::task;
using rondo::durable::wall_time;
using tickets = std::vector<ticket>;
using ids = std::vector<std::int64_t>;

// A dispatcher leaves what is locked for later, and continues with the rest.

bool soon(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// One task in somebody's transaction, and another that is free. Both are claimed, or begun.
struct two_tasks {
  postgresql_database db{*postgresql_server::get()};
  std::unique_ptr<rondo::durable::store> tasks = db.open_store();
  user_connection mine{db.url()};
  worker w{db};
  std::int64_t id = 0;
  ticket locked, free;

  explicit two_tasks(bool begun) {
    id = tasks->submit_after(0s, {});
    locked = ticket_of(w.claim_one());
    tasks->submit_after(0s, {});
    free = ticket_of(w.claim_one());
    if (begun) w.take({.begun = {locked, free}});
  }
  void cancel() {
    mine.run("begin");
    tasks->cancel(mine.get(), id);
  }

  /// Must not wait for the transaction. If it does, the transaction is rolled back at once, so that the test ends.
  turn_result take(const turn& what) {
    auto taken = std::async(std::launch::async, [&] { return w.take(what); });
    while (taken.wait_for(1ms) != std::future_status::ready) {
      if (db.ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == "0") continue;
      FAIL_CHECK("it waits for a lock");
      mine.run("rollback");
    }
    return taken.get();
  }
  std::string state_of(ticket t) {
    return db.ask("select state from rondo_task where id = " + std::to_string(t.id));
  }
};

TEST_CASE("the end of a run whose task is in an open transaction is reported later, other ends at once") {
  for (const std::string end : {"commit", "rollback"}) {
    two_tasks x(true);
    x.cancel();
    const turn both{.finished = {x.locked, x.free}};
    auto done = x.take(both);
    CHECK(done.finished == tickets{x.free});
    CHECK(done.locked == tickets{x.locked});
    x.mine.run(end);
    done = x.take(both);
    CHECK(done.finished == tickets{x.locked});
    CHECK(done.locked.empty());
    CHECK(x.db.ask("select count(*) from rondo_task") == "0");
  }
}

TEST_CASE(
    "the failure of such a run is reported later too, and does not bring back a task that the transaction "
    "has cancelled") {
  for (const std::string end : {"commit", "rollback"}) {
    two_tasks x(true);
    x.cancel();
    const turn both{.failed = {{.of = x.locked, .retry_after = 1h, .reason = "it"},
                               {.of = x.free, .retry_after = 1h, .reason = "it"}}};
    auto done = x.take(both);
    CHECK(done.failed == tickets{x.free});
    CHECK(done.locked == tickets{x.locked});
    x.mine.run(end);
    done = x.take(both);
    CHECK(done.failed == tickets{x.locked});
    CHECK(done.locked.empty());
    CHECK(x.state_of(x.locked) == (end == "commit" ? "" : "0"));
  }
}

TEST_CASE("the end of a point is reported later too, whether or not its run had begun") {
  for (const bool begun : {false, true}) {
    for (const std::string end : {"commit", "rollback"}) {
      two_tasks x(begun);
      x.cancel();
      const rondo::detail::zoned_point next{x.db.now() + 1h};
      const turn both{.passed = {{.of = x.locked, .next = next}, {.of = x.free, .next = next}}};
      auto done = x.take(both);
      CHECK(done.passed == tickets{x.free});
      CHECK(done.locked == tickets{x.locked});
      x.mine.run(end);
      done = x.take(both);
      const bool is_gone = end == "commit" && !begun;
      CHECK(done.passed == (is_gone ? tickets{} : tickets{x.locked}));
      CHECK(done.removed == (end == "commit" && begun ? tickets{x.locked} : tickets{}));
      CHECK(done.locked.empty());
      CHECK(x.state_of(x.locked) == (end == "commit" ? "" : "0"));
    }
  }
}

TEST_CASE(
    "a run does not begin while its task is in an open transaction, nor if that transaction has cancelled "
    "it") {
  for (const std::string end : {"commit", "rollback"}) {
    two_tasks x(false);
    x.cancel();
    const turn both{.begun = {x.locked, x.free}};
    auto done = x.take(both);
    CHECK(done.begun == tickets{x.free});
    CHECK(done.locked == tickets{x.locked});
    x.mine.run(end);
    done = x.take({.begun = {x.locked}});
    CHECK(done.begun == (end == "commit" ? tickets{} : tickets{x.locked}));
    CHECK(done.locked.empty());
  }
}

TEST_CASE("a task in an open transaction is handed back later") {
  for (const bool begun : {false, true}) {
    two_tasks x(begun);
    x.cancel();
    turn both;
    (begun ? both.unstarted : both.returned) = {x.locked, x.free};
    CHECK(x.take(both).locked == tickets{x.locked});
    CHECK(x.state_of(x.free) == "0");
    x.mine.run("rollback");
    CHECK(x.take(both).locked.empty());
    CHECK(x.state_of(x.locked) == "0");
  }
}

TEST_CASE("while a task is in an open transaction, leases are renewed and claims are adopted") {
  two_tasks x(true);
  x.cancel();
  CHECK(x.take({.renewed = {x.locked, x.free}}).renewed == tickets{x.free});
  x.mine.run("rollback");
  two_tasks y(false);
  y.cancel();
  CHECK(ids_of(y.take({.adopt = true}).claimed) == std::vector{y.free.id});
}

/// A client that runs a statement again and again.
class busy_client {
 public:
  busy_client(const std::string& url, const std::string& statement)
      : runs_(std::async(std::launch::async, [this, url, statement] {
          user_connection mine(url);
          mine.run("set synchronous_commit = off");  // a sync would keep the lock for long
          while (!is_over_) mine.run(statement);
        })) {}
  ~busy_client() { is_over_ = true; }
  /// Throws if a statement has failed.
  void stop() {
    is_over_ = true;
    runs_.get();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::future<void> runs_;  // its destructor waits
};

TEST_CASE("a task whose row somebody changes at the same time begins and ends, or counts as locked") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  worker w(db);
  busy_client other(db.url(), "update rondo_task set reason = 'changed'");
  int missed = 0;
  // Whether the answer says what has become of the row. Repeats what has been missed.
  const auto is_true_of = [&](const turn& what, const std::string& state_when_done) {
    for (;; ++missed) {
      const turn_result done = w.take(what);
      const bool is_done = done.begun.size() + done.finished.size() == 1;
      const std::string state = db.ask("select coalesce(max(state), 9) from rondo_task");
      if (is_done || done.locked.size() != 1) return is_done && state == state_when_done;
      if (state == state_when_done) return false;
    }
  };
  bool all_true = true;
  for (int i = 0; all_true && (i < 100 || (missed == 0 && i != 10'000)); ++i) {
    tasks->submit_after(0s, {});
    std::vector<claim> claims;
    while (claims.empty()) claims = w.claim_up_to(1);
    const tickets one{ticket_of(claims[0])};
    all_true = is_true_of({.begun = one}, "2") && is_true_of({.finished = one}, "9");
  }
  other.stop();
  CHECK(all_true);
  CHECK(missed != 0);  // otherwise the two have never met
}

TEST_CASE("a claim that misses a task whose row somebody changes says that there may be more") {
  for (const std::string lane : {"", "a"}) {  // with one, the claim looks for everything
    CAPTURE(lane);
    postgresql_database db(*postgresql_server::get());
    const auto tasks = db.open_store();
    worker w(db);
    const auto changed = tasks->submit_at(db.now() - 1min, {.lane = lane});
    tasks->submit_after(0s, {});
    busy_client other(db.url(),
                      "update rondo_task set reason = 'changed' where id = " + std::to_string(changed));
    // Claims one of the two, as many times as it must to miss the first, and gives it back.
    int missed = 0;
    bool all_true = true;
    for (int i = 0; i != 5'000 && missed != 5 && all_true; ++i) {
      const turn_result done = w.take({.claim_up_to = 1});
      if (done.claimed.empty()) {
        ++missed;
        all_true = done.may_have_more;
      } else {
        const turn back{.returned = {ticket_of(done.claimed[0])}};
        while (!w.take(back).locked.empty()) continue;
      }
    }
    other.stop();
    CHECK(all_true);
    CHECK(missed != 0);  // otherwise the two have never met
  }
}

TEST_CASE("a dispatcher does not wait long for a locked table, but a store does") {
  two_tasks x(true);
  x.mine.run("begin; lock table rondo_task in exclusive mode");
  auto submitted = std::async(std::launch::async, [&] { return x.tasks->submit_after(1h, {}); });
  try {
    x.w.take({.finished = {x.locked}});
    FAIL("it did not wait");
  } catch (const store_error& error) {
    CHECK(std::string(error.what()).find("lock timeout") != std::string::npos);
    CHECK(!error.perhaps_done());
  }
  CHECK(submitted.wait_for(0s) == std::future_status::timeout);
  x.mine.run("rollback");
  CHECK(submitted.get() > 0);
  CHECK(x.take({.finished = {x.locked}}).finished == tickets{x.locked});
}

TEST_CASE("a transaction that stays open on one task does not affect the leases and runs of the others") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  user_connection mine(db.url());
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> may_end{false};
  struct at_the_end {
    std::atomic<bool>& flag;
    ~at_the_end() { flag = true; }
  };
  const auto run = [&](const task& t) {
    ++begun;
    while (t.payload == "long" && !may_end) std::this_thread::sleep_for(1ms);
    ++ended;
  };
  rondo::timer time;
  dispatcher_options o;
  o.lease = 1s;
  o.on_error = [](const std::string&) {};
  dispatcher one(time, *tasks, run, o), two(time, *tasks, run, o);
  const at_the_end lets_them_end{may_end};
  const auto cancelled = tasks->submit_after(0s, {.payload = "long"});
  tasks->submit_after(0s, {.payload = "long"});
  REQUIRE(soon([&] { return begun == 2; }));
  mine.run("begin");
  CHECK(!tasks->cancel(mine.get(), cancelled));
  std::this_thread::sleep_for(3s);  // three leases
  tasks->submit_after(0s, {});
  REQUIRE(soon([&] { return ended == 1; }));
  CHECK(begun == 3);  // neither of the two has begun again
  may_end = true;
  REQUIRE(soon([&] { return ended == 3; }));
  REQUIRE(soon([&] { return db.ask("select count(*) from rondo_task") == "1"; }));
  mine.run("commit");
  REQUIRE(soon([&] { return db.ask("select count(*) from rondo_task") == "0"; }));
  one.stop();
  two.stop();
  CHECK(begun == 3);
}

TEST_CASE("a run that waits for an open transaction begins when that transaction has been rolled back") {
  postgresql_database db(*postgresql_server::get());
  const auto tasks = db.open_store();
  user_connection mine(db.url());
  std::atomic<int> runs{0};
  rondo::timer time;
  dispatcher_options o;
  o.threads = 1;
  dispatcher one(
      time, *tasks, [&](const task&) { ++runs; }, o);
  const auto id = tasks->submit_after(1s, {});
  REQUIRE(soon([&] { return db.ask("select state from rondo_task") == "1"; }));
  mine.run("begin");
  CHECK(tasks->cancel(mine.get(), id));
  std::this_thread::sleep_for(1500ms);  // it has become due
  CHECK(runs == 0);
  tasks->submit_after(0s, {});
  REQUIRE(soon([&] { return runs == 1; }));  // the only thread is free
  mine.run("rollback");
  REQUIRE(soon([&] { return runs == 2; }));
  one.stop();
  CHECK(one.stats().withdrawn == 0);
  CHECK(one.stats().completed == 2);
}

// Lanes while somebody's transaction is open, and while several sessions claim at once.

struct in_use {
  postgresql_database db{*postgresql_server::get()};
  std::unique_ptr<rondo::durable::store> tasks = db.open_store();
  user_connection mine{db.url()};
  worker w{db, "w"}, other{db, "other"};

  std::int64_t submit(const std::string& lane, rondo::duration since_due = 1min) {
    return tasks->submit_at(db.now() - since_due, {.lane = lane});
  }
  /// Must not wait for a lock. If it does, the transaction is rolled back, so that the test ends.
  turn_result take(const turn& what) {
    auto taken = std::async(std::launch::async, [&] { return w.take(what); });
    while (taken.wait_for(1ms) != std::future_status::ready) {
      if (db.ask("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") == "0") continue;
      FAIL_CHECK("it waits for a lock");
      mine.run("rollback");
    }
    return taken.get();
  }
  ids claim(std::size_t count = 100) {
    for (;;) {
      const turn_result done = take({.claim_up_to = count});
      if (!done.claimed.empty() || !done.may_have_more) return ids_of(done.claimed);
    }
  }
  std::string state_of(std::int64_t id) {
    return db.ask("select state from rondo_task where id = " + std::to_string(id));
  }
};

TEST_CASE("a task is not set aside behind one that an open transaction removes") {
  for (const bool commits : {false, true}) {
    in_use x;
    const auto first = x.submit("a", 2min), second = x.submit("a");
    x.mine.run("begin");
    CHECK(x.tasks->cancel(x.mine.get(), first));
    CHECK(x.claim().empty());
    CHECK(x.state_of(second) == "5");
    x.mine.run(commits ? "commit" : "rollback");
    CHECK(x.claim() == ids{commits ? second : first});
  }
}

TEST_CASE("a session that has found only tasks without a lane for long still finds all others") {
  in_use x;
  const auto find_others_no_more = [&] {
    for (int n = 0; n < 150; ++n) CHECK(x.take({.claim_up_to = 1}).claimed.empty());
    const auto plain = x.submit("");
    CHECK(ids_of(x.take({.claim_up_to = 1}).claimed) == ids{plain});
  };
  std::int64_t in_lane = 0;
  for (const std::string lane : {"a", "b"}) {
    in_lane = x.submit(lane);
    const auto beside = x.submit("");
    const auto first = x.take({.claim_up_to = 100});
    CHECK(ids_of(first.claimed) == ids{beside});  // what the test is about: it has not looked at lanes
    CHECK(first.may_have_more);
    CHECK(x.claim() == ids{in_lane});
    find_others_no_more();
  }
  x.db.ask("update rondo_task set lease_until = now() - interval '1 second' where lane = 'b'");
  CHECK(x.claim() == ids{in_lane});

  find_others_no_more();
  x.db.ask("delete from rondo_task where lane is not null");
  const auto stuck = x.submit("a");
  x.db.ask("update rondo_task set state = 6 where lane is not null");
  x.db.ask("insert into rondo_lane_stuck values ('default', 'a')");
  CHECK(x.claim() == ids{stuck});
}

TEST_CASE("however many tasks wait behind one that an open transaction has, other lanes are claimed") {
  in_use x;
  const auto first = x.submit("a", 4min);
  for (int n = 0; n < 7; ++n) x.submit("a", 3min);
  const auto other = x.submit("b", 2min), third = x.submit("c", 1min);
  x.submit("b", 1min);
  x.mine.run("begin");
  CHECK(x.tasks->cancel(x.mine.get(), first));
  CHECK(x.claim(3) == ids{other, third});
  CHECK(x.claim(3).empty());
  x.mine.run("rollback");
  CHECK(x.claim(3) == ids{first});
}

TEST_CASE("a transaction that removes a task frees the next one, whatever its isolation") {
  for (const std::string level : {"read committed", "repeatable read", "serializable"}) {
    CAPTURE(level);
    in_use x;
    const auto first = x.submit("a", 2min), second = x.submit("a");
    const ticket t = ticket_of(x.w.claim_one());
    CHECK(x.claim().empty());
    x.w.give_back(t);
    CHECK(x.state_of(second) == "6");
    x.mine.run("begin isolation level " + level);
    CHECK(x.tasks->cancel(x.mine.get(), first));
    x.mine.run("commit");
    CHECK(x.claim() == ids{second});
  }
}

TEST_CASE("a task that was set aside after a transaction began is freed by it nevertheless") {
  in_use x;
  const auto first = x.submit("a", 2min);
  x.mine.run("begin isolation level repeatable read");
  x.mine.run("select count(*) from rondo_task");
  const auto second = x.submit("a");  // which the transaction does not see
  {
    user_connection holder(x.db.url());  // so that nobody claims the first
    holder.run("begin");
    holder.run("select id from rondo_task where id = " + std::to_string(first) + " for key share");
    CHECK(x.claim().empty());
    CHECK(x.state_of(second) == "6");
    holder.run("rollback");
  }
  CHECK(x.tasks->cancel(x.mine.get(), first));
  x.mine.run("commit");
  CHECK(x.state_of(second) == "6");
  CHECK(x.db.ask("select count(*) from rondo_lane_stuck") == "1");
  CHECK(x.claim() == ids{second});
  CHECK(x.db.ask("select count(*) from rondo_lane_stuck") == "0");
}

TEST_CASE("the end of a run does not wait for a transaction that has the next task of the lane") {
  for (const bool commits : {false, true}) {
    in_use x;
    const auto first = x.submit("a", 3min), second = x.submit("a", 2min), third = x.submit("a");
    const ticket t = ticket_of(x.w.claim_one());
    CHECK(t.id == first);
    CHECK(x.w.begin(t));
    CHECK(x.claim().empty());
    CHECK(x.state_of(second) == "6");
    x.mine.run("begin");
    CHECK(x.tasks->cancel(x.mine.get(), second));
    CHECK(x.take({.finished = {t}}).finished == std::vector{t});
    CHECK(x.claim().empty());
    x.mine.run(commits ? "commit" : "rollback");
    CHECK(x.claim() == ids{commits ? third : second});
    CHECK(x.db.ask("select count(*) from rondo_lane_stuck") == "0");
  }
}

TEST_CASE("a task does not begin while another of its lane may be about to") {
  in_use x;
  x.submit("a", 2min);
  const auto second = x.submit("b");
  const auto claims = x.w.claim_up_to(2);
  REQUIRE(claims.size() == 2);
  x.db.ask("update rondo_task set lane = 'a' where id = " + std::to_string(second));
  const ticket first = ticket_of(claims[0]);
  x.mine.run("begin");
  x.mine.run("update rondo_task set state = 2 where id = " + std::to_string(second));
  const auto done = x.take({.begun = {first}});
  CHECK(done.begun.empty());
  CHECK(done.early.empty());  // it would be given back, claimed again, and so on without a rest
  CHECK(done.locked == std::vector{first});
  x.tasks->pause("default");
  CHECK(x.take({.begun = {first}}).early == std::vector{first});  // it cannot begin anyway
  x.tasks->resume("default");
  x.mine.run("rollback");
  CHECK(x.take({.begun = {first}}).begun == std::vector{first});
}

TEST_CASE("a task does not begin beside an earlier one of its lane that was submitted and began meanwhile") {
  in_use x;
  x.db.ask("create unique index two_at_once on rondo_task (queue, lane) where state in (2, 4)");
  x.submit("a");
  const ticket later = ticket_of(x.w.claim_one());
  // Looking for many tasks that do not exist takes long, after the statement has begun and before it comes to the last one.
  turn many;
  for (int n = 1; n != 400'000; ++n) many.begun.push_back({.id = later.id + n, .fence = 1});
  many.begun.push_back(later);
  many.in_lanes = {later};
  auto taken = std::async(std::launch::async, [&] { return x.w.take(many); });
  const std::string begins =
      "select count(*) from pg_stat_activity where state = 'active' and query like '%t.lane, t.place, "
      "t.due%' "
      "and query_start < clock_timestamp() - interval '1 s' and pid <> pg_backend_pid()";
  CHECK(soon([&] { return x.db.ask(begins) != "0" || taken.wait_for(0s) == std::future_status::ready; }));
  const auto earlier = x.submit("a", 2min);
  tickets begun;
  for (const claim& c : x.other.claim_up_to(1)) {  // none, on a host so fast that the later one runs
    CHECK(c.what.id == earlier);
    begun = x.other.take({.begun = {ticket_of(c)}, .in_lanes = {ticket_of(c)}}).begun;
  }
  tickets begun_here;
  CHECK_NOTHROW(begun_here = taken.get().begun);
  CHECK(begun.size() + begun_here.size() == 1);
}

TEST_CASE("the search path of a caller that removes a task does not matter") {
  in_use x;
  const auto first = x.submit("a", 2min), second = x.submit("a");
  CHECK(x.claim() == ids{first});
  CHECK(x.claim().empty());
  x.mine.run("create schema elsewhere; set search_path = elsewhere");
  CHECK(x.tasks->cancel(x.mine.get(), first));
  CHECK(x.claim() == ids{second});
  x.mine.run("drop schema elsewhere");
}

TEST_CASE("other dispatchers are told when the next task of a lane can run") {
  in_use x;
  const auto first = x.submit("a", 2min);
  x.submit("a");
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(x.w.begin(t));
  CHECK(x.claim().empty());
  x.other.session().interrupt();
  while (x.other.session().wait()) {
  }
  auto told = std::async(std::launch::async, [&] { return x.other.session().wait(); });
  CHECK(x.w.finish(t));
  CHECK(told.get());
  CHECK(first == t.id);
}

/// How many entries of the index of lanes a transaction reads in which the statement is executed, for so many tasks of a
/// lane. What it leaves of the lane must go on.
long long entries_read(const std::string& statement, const std::string& savepoint, int tasks) {
  in_use x;
  x.db.ask(
      "insert into rondo_task (queue, inline_payload, lane, due) select 'default', '', 'a', "
      "now() - interval '1 hour' + i * interval '1 ms' from generate_series(1, " +
      std::to_string(tasks + 1) + ") i");
  const auto last = std::stoll(x.db.ask("select max(id) from rondo_task"));
  x.w.give_back(ticket_of(x.w.claim_one()));
  CHECK(x.state_of(last) == "6");
  x.other.session().interrupt();
  while (x.other.session().wait()) {
  }
  x.mine.run("begin");
  x.mine.run(savepoint);
  x.mine.run(statement + " where lane = 'a' and id < " + std::to_string(last));
  const auto read = x.mine.run("select pg_stat_get_xact_tuples_returned('rondo_task_lane'::regclass)");
  CHECK(x.mine.run("select count(*) <= 1 from rondo_lane_stuck") == "t");
  auto told = std::async(std::launch::async, [&] { return x.other.session().wait(); });
  x.mine.run("commit");
  CHECK(told.get());
  CHECK(x.claim() == ids{last});
  CHECK(x.claim().empty());
  CHECK(x.db.ask("select count(*) from rondo_lane_stuck") == "0");
  CHECK(x.db.wrong() == "");
  return std::stoll(read);
}

TEST_CASE("a transaction that removes or moves many tasks of a lane reads in proportion to their number") {
  for (const std::string statement : {"delete from rondo_task", "update rondo_task set queue = 'q'"})
    for (const std::string savepoint : {"select 1", "savepoint s"}) {
      CAPTURE(statement);
      CAPTURE(savepoint);
      const auto few = entries_read(statement, savepoint, 100);
      const auto many = entries_read(statement, savepoint, 400);
      CAPTURE(few);
      CAPTURE(many);
      CHECK(many < 6 * few);
    }
}

TEST_CASE("a lane from which a transaction removes tasks one after the other goes on") {
  for (const int removed : {1, 7, 8, 9, 12})
    for (const std::string end :
         {"commit", "rollback to savepoint s; commit", "release savepoint s; commit"}) {
      CAPTURE(removed);
      CAPTURE(end);
      in_use x;
      ids all;
      for (int n = 0; n != 14; ++n) all.push_back(x.submit("a", 1min - std::chrono::milliseconds(n)));
      x.w.give_back(ticket_of(x.w.claim_one()));
      CHECK(x.state_of(all.back()) == "6");
      x.mine.run("begin");
      x.mine.run("savepoint s");
      for (int n = 0; n != removed; ++n)
        x.mine.run("delete from rondo_task where id = " + std::to_string(all[static_cast<std::size_t>(n)]));
      x.mine.run(end);
      CHECK(x.claim() == ids{all[end.starts_with("rollback") ? 0 : static_cast<std::size_t>(removed)]});
      CHECK(x.claim().empty());
      CHECK(x.db.wrong() == "");
      CHECK(x.db.ask("select count(*) from rondo_lane_stuck") == "0");
    }
}

std::vector<ticket> those_of(const std::vector<ticket>& asked, const std::vector<ticket>& locked,
                             const std::vector<ticket>& more) {
  std::vector<ticket> result = more;
  std::ranges::copy_if(asked, std::back_inserter(result),
                       [&](ticket t) { return std::ranges::find(locked, t) != locked.end(); });
  return result;
}

/// A session that runs tasks until all are done.
void work(postgresql_database& db, int number, std::atomic<std::size_t>& done, std::size_t all) {
  worker w(db, "worker " + std::to_string(number));
  std::vector<ticket> held, running, unwanted;
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (done < all && std::chrono::steady_clock::now() < end) {
    const turn_result r = w.take(
        {.finished = running, .returned = unwanted, .begun = held, .in_lanes = held, .claim_up_to = 7});
    done += r.finished.size();
    std::vector<ticket> claimed;
    for (const claim& c : r.claimed) claimed.push_back(ticket_of(c));
    running = those_of(running, r.locked, r.begun);
    unwanted = those_of(unwanted, r.locked, r.early);
    held = those_of(held, r.locked, claimed);
  }
}

TEST_CASE("several sessions never run two tasks of a lane at once, while earlier ones are submitted") {
  in_use x;
  // Refuses a second run of a lane.
  x.db.ask("create unique index two_at_once on rondo_task (queue, lane) where state in (2, 4)");
  constexpr std::size_t tasks = 600, threads = 3;
  std::atomic<std::size_t> done{0};
  std::vector<std::thread> all;
  for (std::size_t i = 0; i != threads; ++i)
    all.emplace_back([&x, &done, i] { CHECK_NOTHROW(work(x.db, static_cast<int>(i), done, tasks)); });
  for (std::size_t i = 0; i != tasks; ++i)
    x.submit(std::string(1, static_cast<char>('a' + i % 3)), std::chrono::milliseconds(i % 2 == 0 ? 0 : i));
  for (std::thread& t : all) t.join();
  CHECK(done == tasks);
  CHECK(x.db.ask("select count(*) from rondo_task") == "0");
}

}  // namespace durable_postgresql_locks
