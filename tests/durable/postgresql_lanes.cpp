// Lanes while somebody's transaction is open, and while several sessions claim at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_lanes {

using namespace durable_test;
using rondo::durable::wall_time;
using ids = std::vector<std::int64_t>;

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
    const turn_result r =
        w.take({.finished = running, .returned = unwanted, .begun = held, .claim_up_to = 7});
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

}  // namespace durable_postgresql_lanes
