// A database whose last commits are lost, as in a failover or when a backup is restored: claims that it does not know of any
// more. The same tests run for SQLite and PostgreSQL.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <rondo/timer.hpp>

#include "durable/sql_database.hpp"
#include "threads/patience.hpp"

namespace durable_history {

using namespace durable_test;
using rondo::test::gate;

struct in_use {
  std::unique_ptr<sql_database> db = new_sql_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db, "w"}, other{*db, "other"};

  void set(std::int64_t id, const std::string& assignments) const {
    db->ask("UPDATE rondo_task SET " + assignments + " WHERE id = " + std::to_string(id));
  }
  /// As before its first claim.
  void forget_claim(std::int64_t id) const {
    set(id, "state = 0, attempt = 0, fence = 0, owner = NULL, lease_until = NULL");
  }
  ticket held() {
    tasks->submit_after(0s, {});
    return ticket_of(w.claim_one());
  }
  ticket running() {
    const ticket t = held();
    REQUIRE(w.begin(t));
    return t;
  }
};

TEST_CASE("history: after a lost claim, the next one has a greater fence, and the first one does not begin") {
  in_use x;
  const ticket lost = x.held();
  x.forget_claim(lost.id);
  CHECK_FALSE(x.w.begin(lost));
  x.db->pass(1ms);  // no failover is faster
  const ticket now = ticket_of(x.other.claim_one());
  CHECK(now.id == lost.id);
  CHECK(now.fence > lost.fence);
  CHECK_FALSE(x.w.begin(lost));
  CHECK(x.other.begin(now));
  CHECK_FALSE(x.w.finish(lost));
  CHECK(x.other.finish(now));
}

TEST_CASE("history: a session changes nothing that another one has, even with the same fence") {
  const std::vector<std::pair<std::string, std::function<void(worker&, ticket)>>> of_held{
      {"begin", [](worker& w, ticket t) { CHECK_FALSE(w.begin(t)); }},
      {"give back", [](worker& w, ticket t) { w.give_back(t); }},
      {"pass",
       [](worker& w, ticket t) { CHECK(w.take({.passed = {{.of = t, .next = {}}}}).passed.empty()); }}};
  const std::vector<std::pair<std::string, std::function<void(worker&, ticket)>>> of_running{
      {"begin again", [](worker& w, ticket t) { CHECK_FALSE(w.begin(t)); }},
      {"finish", [](worker& w, ticket t) { CHECK_FALSE(w.finish(t)); }},
      {"retry", [](worker& w, ticket t) { CHECK_FALSE(w.retry(t, 1min)); }},
      {"give up", [](worker& w, ticket t) { CHECK_FALSE(w.give_up(t, "why")); }},
      {"take back", [](worker& w, ticket t) { w.unstart(t); }},
      {"pass",
       [](worker& w, ticket t) { CHECK(w.take({.passed = {{.of = t, .next = {}}}}).passed.empty()); }},
      {"renew", [](worker& w, ticket t) { CHECK_FALSE(w.renew(t)); }},
      {"keep", [](worker& w, ticket t) { w.take({.kept = {t}}); }}};
  for (const bool runs : {false, true})
    for (const auto& each : runs ? of_running : of_held) {
      CAPTURE(runs);
      CAPTURE(each.first);
      in_use x;
      const ticket t = runs ? x.running() : x.held();
      x.set(t.id, "owner = 'other'");
      if (runs) x.db->pass(20s);  // less than half of the lease is left
      const auto before = x.db->rows();
      each.second(x.w, t);
      CHECK(x.db->rows() == before);
      CHECK(x.w.take({.finished = {t}, .returned = {t}}).locked.empty());
      if (runs)
        CHECK(x.other.finish(t));
      else
        CHECK(x.other.begin(t));
    }
}

TEST_CASE("history: a watched run is told of whatever takes the task away, and of nothing else") {
  in_use x;
  const ticket kept = x.running(), forgotten_beginning = x.running();
  x.set(forgotten_beginning.id, "state = 1, attempt = 0");  // it will be repeated
  const std::vector<std::pair<std::string, std::function<void(ticket)>>> losses{
      {"cancelled", [&](ticket t) { CHECK_FALSE(x.tasks->cancel(t.id)); }},
      {"removed", [&](ticket t) { x.db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(t.id)); }},
      {"claim forgotten", [&](ticket t) { x.forget_claim(t.id); }},
      {"of another", [&](ticket t) { x.set(t.id, "owner = 'other'"); }},
      {"claimed again", [&](ticket t) { x.set(t.id, "fence = fence + 1"); }},
      {"dead", [&](ticket t) { x.set(t.id, "state = 3, owner = NULL"); }}};
  for (const auto& each : losses) {
    CAPTURE(each.first);
    const ticket t = x.running();
    const std::vector<ticket> all{kept, t, forgotten_beginning};
    CHECK(x.w.take({.watched = all}).cancelled.empty());
    each.second(t);
    CHECK(x.w.take({.watched = all}).cancelled == std::vector{t});
    x.db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(t.id));
  }
}

TEST_CASE("history: a run whose claim is lost is interrupted, and its result is refused and reported") {
  const auto db = new_sql_database();
  const auto tasks = db->open_store();
  std::atomic<std::int64_t> id{0};
  std::string told;
  gate began, reported;
  rondo::timer timer;
  const auto handler = [&](const rondo::durable::task& t, const std::stop_token& stop) {
    if (id.exchange(t.id) != 0) return;
    began.open();
    gate interrupted;
    const std::stop_callback on_stop(stop, [&] { interrupted.open(); });
    CHECK(interrupted.wait());
  };
  rondo::durable::dispatcher d(timer, *tasks, handler, {.on_error = [&](const std::string& line) {
                                 told = line;
                                 reported.open();
                               }});
  tasks->submit_after(0s, {.payload = "p"});
  REQUIRE(began.wait());
  db->ask("UPDATE rondo_task SET state = 3, fence = 0, owner = NULL, reason = 'restored' WHERE id = " +
          std::to_string(id));
  CHECK(reported.wait());
  d.stop();
  CAPTURE(told);
  CHECK(told.find("went back to an earlier state") != told.npos);
  CHECK(db->ask("SELECT state FROM rondo_task") == "3");
  CHECK(d.stats().leases_lost == 1);
}

}  // namespace durable_history
