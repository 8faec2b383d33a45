// The statements for operators in lib/durable/operators.md are valid, and do what it says.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "durable/sql_database.hpp"

namespace durable_test {

namespace durable_operators_sql {

/// The statements of the SQL listings that are for this engine. Each part begins with a comment, which may name an
/// engine.
std::vector<std::string> statements_for(const std::string& engine, const std::string& other) {
  std::ifstream page(RONDO_TESTS "/../lib/durable/operators.md");
  std::vector<std::string> result;
  bool in_sql = false, is_ours = true;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_sql = line == "```sql";
      is_ours = true;
    } else if (in_sql && line.starts_with("-- ")) {
      is_ours = line.find(engine) != line.npos || line.find(other) == line.npos;
    } else if (in_sql && is_ours) {
      result.push_back(line);
    }
  }
  return result;
}

std::vector<std::string> statements_on(sql_database& db) {
  return db.url().starts_with("sqlite:") ? statements_for("SQLite", "PostgreSQL")
                                         : statements_for("PostgreSQL", "SQLite");
}

/// The statement that contains `part`, with `from` replaced by `to`.
std::string statement(sql_database& db, const std::string& part, const std::string& from,
                      const std::string& to) {
  for (std::string each : statements_on(db)) {
    if (each.find(part) == each.npos) continue;
    const std::size_t place = each.find(from);
    REQUIRE(place != each.npos);
    return each.replace(place, from.size(), to);
  }
  FAIL("lib/durable/operators.md has no ", part);
  return "";
}

TEST_CASE("operators: the database accepts every statement of the page") {
  const auto db = new_sql_database();
  db->open_store();
  const std::vector<std::string> all = statements_on(*db);
  CHECK(all.size() >= 6);
  for (const std::string& each : all) {
    CAPTURE(each);
    CHECK_NOTHROW(db->ask(each));
  }
}

TEST_CASE("operators: old dead tasks can be removed, with their payloads") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker w(*db);
  task_in(state::dead, *store, w, {.payload = std::string(1000, 'x')});
  const auto live = store->submit_after(1h, {});
  db->ask(db->url().starts_with("sqlite:") ? "UPDATE rondo_task SET due = 0 WHERE state = 3"
                                           : "UPDATE rondo_task SET due = 'epoch' WHERE state = 3");
  db->ask(statement(*db, "DELETE FROM rondo_task WHERE state = 3", "", ""));
  CHECK(db->ask("SELECT count(*) FROM rondo_task") == "1");
  CHECK(db->ask("SELECT count(*) FROM rondo_payload") == "0");
  CHECK(store->find(live));
}

TEST_CASE("operators: tasks that a node holds can be taken from it, and it notices") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  worker lost(*db, "lost"), other(*db, "other");
  task_in(state::waiting, *store, lost);
  const ticket held = ticket_of(lost.claim_one());
  db->ask(statement(*db, "owner = 'shop", "shop-7:4711:89abcdef01234567", "lost"));
  CHECK_FALSE(lost.begin(held));
  CHECK(other.begin(ticket_of(other.claim_one())));
}

TEST_CASE("operators: a queue can be renamed") {
  const auto db = new_sql_database();
  const auto store = db->open_store();
  const std::int64_t id = store->submit_after(1h, {.queue = "orders"});
  db->ask(statement(*db, "SET queue =", "orders_eu", "orders_us"));
  CHECK(store->find(id)->queue == "orders_us");
}

}  // namespace durable_operators_sql
}  // namespace durable_test
