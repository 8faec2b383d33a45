// Rows and tables that somebody's open transaction has locked. A dispatcher leaves them for later, and continues with
// the rest.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
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
using tickets = std::vector<ticket>;

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

}  // namespace durable_postgresql_locks
