// Schemas that are renamed, and tables that are moved to another schema, while tasks run.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <rondo/timer.hpp>

#include "durable/postgresql_database.hpp"
#include "threads/patience.hpp"

namespace durable_postgresql_moves {

using namespace durable_test;
using rondo::durable::dispatcher;
using rondo::durable::dispatcher_options;
using rondo::durable::store;
using rondo::durable::store_error;
using rondo::durable::task;

/// A queue in the schema "live", which our sessions and stores search, also under its other name.
struct in_schema {
  postgresql_database db{*postgresql_server::get()};
  user_connection operator_at{db.url()};
  std::string url = db.url() + "&options=-csearch_path%3Dlive,moved";

  in_schema() { operator_at.run("drop schema if exists live, moved cascade; create schema live"); }
  ~in_schema() { operator_at.run("drop schema if exists live, moved cascade"); }
  in_schema(const in_schema&) = delete;
  in_schema& operator=(const in_schema&) = delete;
};

const std::array<std::string, 2> moves{"alter schema live rename to moved", R"sql(
  create schema moved;
  do $$ declare t text; begin
    for t in select tablename from pg_tables where schemaname = 'live' order by tablename desc loop
      execute format('alter table live.%I set schema moved', t);
    end loop;
  end $$
)sql"};

TEST_CASE("lanes go on while their schema is renamed, or their tables are moved to another one") {
  for (const std::string& move : moves) {
    CAPTURE(move);
    const in_schema x;
    const auto tasks = store::open(x.url);
    std::atomic<int> runs{0};
    const auto reach = [&](int wanted) {
      const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
      while (runs < wanted && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return runs.load();
    };
    rondo::timer time;
    dispatcher_options o;
    o.on_error = [](const std::string& what) { MESSAGE(what); };
    dispatcher one(
        time, *tasks, [&](const task&) { ++runs; }, o);
    const auto submit_some = [&] {
      for (int n = 0; n != 12; ++n) tasks->submit_after(0s, {.lane = n % 2 == 0 ? "a" : "b"});
    };
    submit_some();
    CHECK(reach(12) == 12);
    user_connection(x.db.url()).run(move);
    submit_some();
    CHECK(reach(24) == 24);
    // Somebody else's tables under the old name do not matter.
    user_connection(x.db.url()).run("create schema if not exists live");
    submit_some();
    CHECK(reach(36) == 36);
    one.stop();
    CHECK(one.stats().completed == 36);
    CHECK_NOTHROW(store::open(x.url));
  }
}

TEST_CASE(
    "tables that move to where later connections search are found by a store at once, and by a session's "
    "next turn") {
  in_schema x;
  const auto search = [&](const std::string& schema) {
    x.operator_at.run("do $$ begin execute format('alter database %I set search_path = " + schema +
                      "', current_database()); end $$");
  };
  search("live");
  const auto tasks = store::open(x.db.url());
  worker w(x.db);
  tasks->submit_after(0s, {.lane = "a"});
  x.operator_at.run(moves[1]);
  search("moved");
  tasks->submit_after(0s, {.lane = "b"});
  CHECK_THROWS_AS(w.claim_up_to(2), store_error);
  CHECK(w.claim_up_to(2).size() == 2);
}

TEST_CASE("the migration of version 2 replaces the functions of lanes, wherever they and the tables are") {
  std::ifstream dump(RONDO_TESTS "/durable/version_2/postgresql.sql");
  const std::string version_2(std::istreambuf_iterator<char>(dump), {});
  for (const std::string& move : moves) {
    CAPTURE(move);
    const in_schema x;
    user_connection own(x.url);
    own.run(version_2);
    own.run(move);
    own.run("create schema if not exists live");
    const auto tasks = store::open(x.url);
    CHECK(own.run("select string_agg(pronamespace::regnamespace::text, ' ') from pg_proc "
                  "where proname in ('rondo_lane_enter', 'rondo_lane_next')") == "moved moved");
    CHECK(own.run("select distinct proconfig from pg_proc where proname = 'rondo_lane_next'") ==
          "{\"search_path=moved, pg_temp\"}");
    CHECK(own.run("select state from moved.rondo_task where id = 2") == "6");
    user_connection(x.db.url()).run("delete from moved.rondo_task where id = 1");
    CHECK(own.run("select state from moved.rondo_task where id = 2") == "5");
    CHECK_NOTHROW(store::open(x.url));
  }
}

}  // namespace durable_postgresql_moves
