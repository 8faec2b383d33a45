// What wakes a waiting session of PostgreSQL.
#include <doctest/doctest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "durable/postgresql_database.hpp"

namespace durable_postgresql_news {

using namespace durable_test;

struct waiting {
  postgresql_database db{*postgresql_server::get()};
  std::unique_ptr<rondo::durable::store> tasks = db.open_store();
  worker w{db};

  /// Whether a wait ends with news. After `what` the wait is interrupted, so it also ends without news.
  template <class Function>
  bool woken_by(Function what) {
    auto woken = std::async(std::launch::async, [&] { return w.session().wait(); });
    what();
    // Earlier notifications reach the session before this one.
    tasks->submit_after(0s, {.queue = "another"});
    if (woken.wait_for(300ms) == std::future_status::timeout) w.session().interrupt();
    return woken.get();
  }

  /// Takes the news of what has been done so far.
  void drain() {
    woken_by([] {});
  }
};

TEST_CASE("a submission that is due soon wakes a waiting session; one that is due later does not") {
  waiting x;
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
  CHECK(x.woken_by([&] { x.tasks->submit_after(4s, {}); }));
  CHECK(!x.woken_by([&] { x.tasks->submit_after(1h, {}); }));
}

TEST_CASE("a submission to another queue wakes nobody") {
  waiting x;
  CHECK(!x.woken_by([&] { x.tasks->submit_after(0s, {.queue = "other"}); }));
}

TEST_CASE("a submission in a transaction wakes a session when it commits, and not if it is rolled back") {
  waiting x;
  const auto mine = x.db.connect();
  mine->execute("begin");
  CHECK(!x.woken_by([&] { x.tasks->submit_after(mine->handle(), 0s, {}); }));
  CHECK(x.woken_by([&] { mine->execute("commit"); }));
  mine->execute("begin");
  x.tasks->submit_after(mine->handle(), 0s, {});
  CHECK(!x.woken_by([&] { mine->execute("rollback"); }));
}

TEST_CASE("a list wakes a waiting session if one of its tasks is due soon") {
  waiting x;
  using rondo::durable::planned;
  const std::vector<planned> far = {{.when = 1h}, {.what = {.queue = "other"}}};
  const std::vector<planned> soon = {{.when = 1h}, {.when = 1s}, {.when = 1h}};
  CHECK(!x.woken_by([&] { x.tasks->submit_all(far); }));
  CHECK(x.woken_by([&] { x.tasks->submit_all(soon); }));
}

TEST_CASE("a queue that is resumed wakes a session, and so does a dead task that is retried") {
  waiting x;
  x.tasks->pause("default");
  CHECK(x.woken_by([&] { x.tasks->resume("default"); }));
  CHECK(!x.woken_by([&] { x.tasks->resume("default"); }));
  const auto id = task_in(state::dead, *x.tasks, x.w);
  x.drain();
  CHECK(x.woken_by([&] { x.tasks->retry(id); }));
}

TEST_CASE("the cancellation or replacement of a run in progress wakes its session") {
  waiting x;
  const auto running = [&] {
    const auto id = task_in(state::running, *x.tasks, x.w, {.key = "k"});
    x.drain();
    return id;
  };
  const auto id = running();
  CHECK(x.woken_by([&] { x.tasks->cancel(id); }));
  running();
  CHECK(x.woken_by([&] { x.tasks->cancel("default", "k"); }));
  running();
  CHECK(x.woken_by([&] { x.tasks->submit_after(1h, {.key = "k", .replace = true}); }));
  x.tasks->cancel("default", "k");
  running();
  CHECK(x.woken_by([&] {
    x.tasks->submit_all(
        std::vector<rondo::durable::planned>{{.what = {.key = "k", .replace = true}, .when = 1h}});
  }));
  CHECK(!x.woken_by([&] { x.tasks->cancel("default", "k"); }));  // it waits
}

TEST_CASE("a task that is moved to a time soon wakes a session") {
  waiting x;
  const auto id = x.tasks->submit_after(1h, {});
  CHECK(!x.woken_by([&] { x.tasks->reschedule_after(id, 2h); }));
  CHECK(x.woken_by([&] { x.tasks->reschedule_after(id, 1s); }));
  x.tasks->submit_after(1h, {.key = "k"});
  CHECK(!x.woken_by([&] { x.tasks->reschedule_after("default", "k", 2h); }));
  CHECK(x.woken_by([&] { x.tasks->reschedule_after("default", "k", 1s); }));
}

TEST_CASE("tasks that a session hands back wake the others, but not itself") {
  waiting x;
  worker other(x.db, "other");
  x.tasks->submit_after(0s, {});
  CHECK(x.w.session().wait());
  const auto t = ticket_of(x.w.claim_one());
  CHECK(!x.woken_by([] {}));
  x.w.give_back(t);
  CHECK(other.session().wait());  // for the submission and for this
  CHECK(!x.woken_by([] {}));
  const auto u = ticket_of(other.claim_one());
  CHECK(x.woken_by([&] { other.give_back(u); }));
  const auto v = ticket_of(other.claim_one());
  CHECK(other.begin(v));
  CHECK(x.woken_by([&] { other.unstart(v); }));
}

TEST_CASE(
    "a failed task that is to be tried again soon wakes the other sessions; one that waits long or is dead "
    "does not") {
  waiting x;
  worker other(x.db, "other");
  const auto running = [&] {
    x.tasks->submit_after(0s, {});
    CHECK(x.w.session().wait());
    const auto t = ticket_of(other.claim_one());
    CHECK(other.begin(t));
    return t;
  };
  const auto t = running(), u = running(), v = running();
  CHECK(!x.woken_by([] {}));
  CHECK(!x.woken_by([&] { CHECK(other.retry(t, 1h)); }));
  CHECK(!x.woken_by([&] { CHECK(other.give_up(u, "never works")); }));
  CHECK(x.woken_by([&] { CHECK(other.retry(v, 4s)); }));
}

TEST_CASE("an interrupt ends a wait, or the next one, once") {
  waiting x;
  auto woken = std::async(std::launch::async, [&] { return x.w.session().wait(); });
  x.w.session().interrupt();
  CHECK(!woken.get());
  for (int i = 0; i < 100'000; ++i) x.w.session().interrupt();  // more than a pipe holds
  CHECK(!x.w.session().wait());
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
}

TEST_CASE("a broken connection ends a wait, and tasks submitted since then count as news") {
  waiting x;
  x.w.take({.claim_up_to = 1});
  auto& server = *postgresql_server::get();
  CHECK(x.woken_by([&] { server.restart(postgresql_server::how::fast); }));
  CHECK(x.w.claim_up_to(10).empty());
  CHECK(x.w.session().wait());  // it listens again, but may have missed notifications
  CHECK(x.woken_by([&] { x.tasks->submit_after(0s, {}); }));
}

TEST_CASE("a session whose connection broke waits only for an interrupt") {
  waiting x;
  auto& server = *postgresql_server::get();
  server.stop(postgresql_server::how::fast);
  CHECK(x.w.session().wait());
  CHECK_THROWS_AS(x.w.claim_up_to(1), rondo::durable::store_error);
  x.w.session().interrupt();
  CHECK(!x.w.session().wait());
  server.start();
}

}  // namespace durable_postgresql_news
