// Where payloads lie: short ones in the row of their task, and long ones apart from it. The same tests run for SQLite and
// PostgreSQL.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "durable/sql_database.hpp"

namespace durable_payloads_apart {

using namespace durable_test;
using rondo::durable::planned;
using rondo::durable::detail::longest_inline_payload;

std::string bytes(std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i != count; ++i) result += static_cast<char>(i % 251);
  return result;
}

std::string apart(sql_database& db) { return db.ask("SELECT count(*) FROM rondo_payload"); }

TEST_CASE("a long payload lies apart, with a key or without") {
  for (const char* key : {"", "k"}) {
    CAPTURE(key);
    const auto db = new_sql_database();
    const auto store = db->open_store();
    store->submit_after(1h, {.payload = bytes(longest_inline_payload), .key = key});
    CHECK(apart(*db) == "0");
    store->submit_after(1h, {.payload = bytes(longest_inline_payload + 1), .key = key, .replace = true});
    CHECK(apart(*db) == "1");
    CHECK(db->ask("SELECT payload_apart FROM rondo_task ORDER BY id DESC") ==
          std::to_string(longest_inline_payload + 1));
    CHECK(db->ask("SELECT length(inline_payload) FROM rondo_task ORDER BY id DESC") == "0");
  }
}

TEST_CASE("a payload that lies apart goes with its task") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker w(*db);
  const rondo::durable::submission large{.payload = bytes(1000), .key = "k"};
  const auto in = [&](state s) { return task_in(s, *store, w, large); };
  CHECK(store->cancel(in(state::waiting)));
  CHECK(apart(*db) == "0");
  CHECK(store->cancel(in(state::held)));
  CHECK(apart(*db) == "0");
  in(state::done);
  CHECK(apart(*db) == "0");
  const std::int64_t dead = in(state::dead);
  CHECK(apart(*db) == "1");
  db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(dead));  // as an operator would
  CHECK(apart(*db) == "0");
  in(state::waiting);
  store->submit_after(1h, {.key = "k", .replace = true});
  CHECK(apart(*db) == "0");
}

TEST_CASE("a submission that is refused or rolled back leaves no payload") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  store->submit_after(1h, {.key = "k"});
  CHECK_THROWS_AS(store->submit_after(1h, {.payload = bytes(1000), .key = "k"}), rondo::durable::key_taken);
  CHECK(apart(*db) == "0");
  const auto mine = db->connect();
  mine->execute("BEGIN");
  store->submit_after(mine->handle(), 1h, {.payload = bytes(1000)});
  mine->execute("ROLLBACK");
  CHECK(apart(*db) == "0");
}

TEST_CASE("the payloads of a list lie apart where they are long, and a list that is refused leaves none") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  std::vector<planned> all(200);
  for (std::size_t i = 0; i < all.size(); i += 10)
    all[i].what = {.payload = bytes(300), .key = i == 0 ? "k" : ""};
  store->submit_all(all);
  CHECK(apart(*db) == "20");
  CHECK_THROWS_AS(store->submit_all(all), rondo::durable::key_taken);
  CHECK(apart(*db) == "20");
}

TEST_CASE("a repeated task has one payload, apart while it is long, and that goes with it") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  const auto declare = [&](std::size_t size) {
    store->repeat({.key = "k", .payload = bytes(size), .when = rondo::durable::schedule::every(1min)});
    CHECK((store->find("default", "k")->payload == bytes(size)));
  };
  declare(1);
  CHECK(apart(*db) == "0");
  declare(1000);
  CHECK(apart(*db) == "1");
  declare(2000);
  CHECK(apart(*db) == "1");
  declare(2);
  CHECK(apart(*db) == "0");
  declare(1000);
  CHECK(store->cancel("default", "k"));
  CHECK(apart(*db) == "0");
}

}  // namespace durable_payloads_apart
