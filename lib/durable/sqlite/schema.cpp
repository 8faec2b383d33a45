#include "durable/sqlite/engine.hpp"

#include <cstddef>
#include <cstdint>

namespace rondo::durable::detail::sqlite {

namespace {

[[noreturn]] void refuse(const connection& database, const std::string& why) {
  throw store_error("rondo: SQLite, " + std::string(sqlite3_db_filename(database.handle(), "main")) + ": " +
                    why);
}

bool exists(connection& database, const std::string& name) {
  return database.query("SELECT 1 FROM sqlite_schema WHERE name = ?", name).next();
}

std::size_t version_of(connection& database, const migrations& steps) {
  if (!exists(database, "rondo_schema")) {
    if (exists(database, "rondo_task")) {
      refuse(database,
             "the schema is damaged: there is a table rondo_task, but no rondo_schema with its version");
    }
    return 0;
  }
  rows all = database.query("SELECT count(*), min(version) FROM rondo_schema");
  all.next();
  const std::int64_t version = all.integer(1);
  if (all.integer(0) != 1 || version < 1) {
    refuse(database,
           "the schema is damaged: the table rondo_schema must have one row, with a version greater than "
           "zero");
  }
  if (version > static_cast<std::int64_t>(steps.size())) {
    refuse(database, "its schema has version " + std::to_string(version) +
                         ", which is newer than what this program knows (" + std::to_string(steps.size()) +
                         "): use a later release of Rondo");
  }
  return static_cast<std::size_t>(version);
}

/// Checks that everything used by the statements of this version exists. Somebody may have changed the schema by hand.
void check_complete(connection& database) {
  for (const char* index : {"rondo_task_due", "rondo_task_lease", "rondo_task_key", "rondo_task_dead",
                            "rondo_task_lane", "rondo_task_lane_due", "rondo_task_lane_busy"}) {
    if (!exists(database, index))
      refuse(database, std::string("the schema is damaged: no such index: ") + index);
  }
  for (const char* trigger : {"rondo_task_gone", "rondo_lane_changed"}) {
    if (!exists(database, trigger))
      refuse(database, std::string("the schema is damaged: no such trigger: ") + trigger);
  }
  try {
    database.query(
        "SELECT id, queue, key, due, state, attempt, fence, owner, lease_until, reason, inline_payload,"
        " payload_apart, lane, next_lane, place, max_attempts, point, point_offset, schedule, missed"
        " FROM rondo_task");
    database.query("SELECT id, payload FROM rondo_payload");
    database.query("SELECT queue FROM rondo_paused");
    database.query("SELECT id, name FROM rondo_owner");
  } catch (const error& e) {
    if (e.code() != SQLITE_ERROR) throw;
    refuse(database, std::string("the schema is damaged: ") + sqlite3_errmsg(database.handle()));
  }
}

// Functions, as constants could throw before main().
std::vector<std::string> version_1() {
  return {
      "CREATE TABLE rondo_schema (version INTEGER NOT NULL)",
      "INSERT INTO rondo_schema VALUES (0)",
      // The payload comes last, so that the other columns can be read without it. See row_state.
      R"(CREATE TABLE rondo_task (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         queue TEXT NOT NULL,
         key TEXT,
         due INTEGER NOT NULL,
         state INTEGER NOT NULL DEFAULT 0,
         attempt INTEGER NOT NULL DEFAULT 0,
         fence INTEGER NOT NULL DEFAULT 0,
         owner TEXT,
         lease_until INTEGER,
         reason TEXT,
         payload BLOB NOT NULL))",
      "CREATE INDEX rondo_task_due ON rondo_task (queue, due) WHERE state = 0",
      "CREATE INDEX rondo_task_lease ON rondo_task (queue, lease_until) WHERE state IN (1, 2, 4)",
      "CREATE UNIQUE INDEX rondo_task_key ON rondo_task (queue, key) WHERE key IS NOT NULL AND state <> 3",
  };
}

// The columns are designed in lib/durable/operators.md. What takes long for many rows is left out: payloads of old rows
// stay where they are, and the new indices contain none of them. As the old column of the payloads has another name,
// programs that know only version 1 get an error rather than a wrong payload.
std::vector<std::string> version_2() {
  return {
      "ALTER TABLE rondo_task RENAME COLUMN payload TO inline_payload",
      "ALTER TABLE rondo_task ADD COLUMN payload_apart INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE rondo_task ADD COLUMN lane TEXT",
      "ALTER TABLE rondo_task ADD COLUMN place INTEGER",
      "ALTER TABLE rondo_task ADD COLUMN max_attempts INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE rondo_task ADD COLUMN point INTEGER",
      "ALTER TABLE rondo_task ADD COLUMN schedule TEXT",
      "ALTER TABLE rondo_task ADD COLUMN missed INTEGER",
      "CREATE TABLE rondo_payload (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)",
      "CREATE TABLE rondo_paused (queue TEXT PRIMARY KEY) WITHOUT ROWID",
      "CREATE TABLE rondo_owner (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE)",
      "CREATE INDEX rondo_task_dead ON rondo_task (queue, id) WHERE state = 3",
      "CREATE INDEX rondo_task_lane ON rondo_task (queue, lane, place) WHERE place IS NOT NULL",
      "CREATE INDEX rondo_task_lane_due ON rondo_task (queue, due) WHERE state = 5",
      R"(CREATE INDEX rondo_task_lane_busy ON rondo_task (queue, lane)
         WHERE lane IS NOT NULL AND state IN (2, 4))",
  };
}

// Whoever changes or deletes a row, triggers keep the states 5 and 6 and the places right, so that other statements need only know
// that a task waits (0). The first task of a lane has state 6 only while another one runs, or nobody would claim it. Others
// may have state 5: a claim that meets one makes it 6. A run keeps its lane: if its task is declared with another one, that
// is its `next_lane` ('' for none), until it does not run any more.
//
// Each trigger that a statement has costs it about 0.7 us, even if its condition is false. So there is one for all updates
// and one for all deletions, and their parts repeat the conditions. FAIL, here and in session.cpp, is about what cannot
// happen; with ABORT, SQLite would prepare to undo each statement by itself (0.4 us).
std::vector<std::string> version_3() {
  const std::string moved =
      "(NEW.queue <> OLD.queue OR NEW.lane IS NOT OLD.lane OR NEW.place IS NOT OLD.place)";
  const std::string entered = "NEW.state = 0 OR NEW.state IN (5, 6) AND " + moved +
                              " OR NEW.state = 3 AND NEW.place IS NOT NULL"
                              " OR NEW.state NOT IN (2, 4) AND NEW.next_lane IS NOT NULL";
  const std::string left =
      "OLD.state IN (2, 4) AND NEW.state NOT IN (2, 4) OR OLD.state <> 3 AND NEW.state = 3 OR " + moved;
  const std::string lane = "iif(NEW.next_lane IS NULL, NEW.lane, nullif(NEW.next_lane, ''))";
  const std::string place = "iif(NEW.next_lane IS NULL, ifnull(NEW.place, NEW.due), NEW.due)";
  const std::string enter = "UPDATE rondo_task SET lane = " + lane + ", next_lane = NULL, place = iif(" +
                            lane + " IS NULL OR state = 3, NULL, " + place +
                            "), state = CASE WHEN state IN (1, 3) THEN state WHEN " + lane +
                            " IS NULL THEN 0 ELSE 5 + EXISTS (SELECT 1 FROM rondo_task AS other WHERE"
                            " other.queue = NEW.queue AND other.lane = " +
                            lane + " AND other.place IS NOT NULL AND (other.place, other.id) < (" + place +
                            ", NEW.id)) END WHERE id = NEW.id";
  const std::string next = R"(
    UPDATE OR FAIL rondo_task SET state = 5 WHERE state = 6 AND id = (
      SELECT id FROM rondo_task WHERE queue = OLD.queue AND lane = OLD.lane AND place IS NOT NULL
      ORDER BY place, id LIMIT 1))";
  return {
      "ALTER TABLE rondo_task ADD COLUMN next_lane TEXT",
      // Databases of development versions have version 2 with other triggers.
      "DROP TRIGGER IF EXISTS rondo_task_gone",
      "DROP TRIGGER IF EXISTS rondo_lane_changed",
      R"(CREATE TRIGGER rondo_task_gone AFTER DELETE ON rondo_task
         WHEN OLD.payload_apart > 0 OR OLD.lane IS NOT NULL BEGIN
           DELETE FROM rondo_payload WHERE id = OLD.id AND OLD.payload_apart > 0;)" +
          next + "; END",
      R"(CREATE TRIGGER rondo_lane_changed AFTER UPDATE OF queue, lane, place, state ON rondo_task
         WHEN coalesce(OLD.lane, NEW.lane, NEW.next_lane) IS NOT NULL AND ()" +
          entered + " OR " + left + ") BEGIN " + enter + " AND (" + entered + "); " + next + " AND (" + left +
          "); END",
  };
}

std::vector<std::string> version_4() { return {"ALTER TABLE rondo_task ADD COLUMN point_offset INTEGER"}; }

bool is_up_to_date(connection& database, const migrations& steps) {
  database.execute("BEGIN");  // so that all queries read the same state
  struct end {
    sqlite3* of;
    ~end() { sqlite3_exec(of, "ROLLBACK", nullptr, nullptr, nullptr); }
  } const at_end{database.handle()};
  if (version_of(database, steps) != steps.size()) return false;
  check_complete(database);
  return true;
}

}  // namespace

const migrations& all_migrations() {
  static const migrations steps{version_1(), version_2(), version_3(), version_4()};
  return steps;
}

void bring_up_to_date(connection& database, const migrations& steps) {
  if (is_up_to_date(database, steps)) return;
  unit_of_work all(database);
  // Reads the version again: another process may have been faster.
  for (std::size_t version = version_of(database, steps); version < steps.size(); ++version) {
    for (const std::string& statement : steps[version]) database.execute(statement);
    database.change("UPDATE rondo_schema SET version = version + 1");
  }
  check_complete(database);
  all.commit();
}

}  // namespace rondo::durable::detail::sqlite
