// Schemas that are renamed, and tables that are moved to another schema, while tasks run.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
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

std::string refusal_to_open(const std::string& url) {
  try {
    store::open(url);
    return "";
  } catch (const store_error& error) {
    return error.what();
  }
}

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

TEST_CASE("store::open() mends rondo_lane_next() if that still looks in the schema of its first day") {
  const in_schema x;
  const auto tasks = store::open(x.url);
  user_connection own(x.url);
  const std::string is_right =
      "select prosrc like '%tg_table_schema%' from pg_proc where proname = 'rondo_lane_next'";
  CHECK(own.run(is_right) == "t");
  own.run(R"(do $$ begin
    execute (select replace(pg_get_functiondef(oid), 'tg_table_schema', quote_literal('live'))
      from pg_proc where proname = 'rondo_lane_next');
  end $$)");
  CHECK(own.run(is_right) == "f");
  own.run("drop role if exists plain; create role plain login");
  own.run("grant usage on schema live to plain; grant all on all tables in schema live to plain");
  auto theirs = x.url;
  theirs.replace(theirs.find("rondo@"), 6, "plain@");
  CHECK(refusal_to_open(theirs) ==
        "rondo: PostgreSQL: the function live.rondo_lane_next() is of an earlier version: the owner of the "
        "tables "
        "must open the store once (permission denied for schema live, SQLSTATE 42501)");
  own.run(moves[0]);
  own.run("create schema live");
  CHECK_NOTHROW(store::open(x.url));
  CHECK(own.run(is_right) == "t");
  own.run(
      "revoke all on all tables in schema moved from plain; revoke all on schema moved from plain; drop role "
      "plain");
}

}  // namespace durable_postgresql_moves
