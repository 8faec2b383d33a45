#include "durable/sqlite/engine.hpp"

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "durable/microseconds.hpp"
#include "durable/open.hpp"
#include "durable/sqlite/session.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace sqlite {

namespace {

/// Removes a task that is not running, and returns true. A running task ends with its run; returns false.
bool cancel_by_id(connection& database, std::int64_t id) {
  if (database.change("DELETE FROM rondo_task WHERE id = ? AND state IN (0, 1)", id) != 0) return true;
  database.change("UPDATE rondo_task SET state = 4, key = NULL WHERE id = ? AND state = 2", id);
  return false;
}

// (The planner needs state <> 3, which is the condition of the index.)
bool cancel_by_key(connection& database, const std::string& queue, const std::string& key) {
  if (database.change("DELETE FROM rondo_task WHERE queue = ? AND key = ? AND state <> 3 AND state IN (0, 1)",
                      queue, key) != 0) {
    return true;
  }
  database.change(
      "UPDATE rondo_task SET state = 4, key = NULL WHERE queue = ? AND key = ? AND state <> 3 AND state = 2",
      queue, key);
  return false;
}

[[noreturn]] void refuse_key(connection& database, const submission& what) {
  rows owner = database.query("SELECT id FROM rondo_task WHERE queue = ? AND key = ? AND state <> 3",
                              what.queue, what.key);
  owner.next();
  throw key_taken("rondo: task " + std::to_string(owner.integer(0)) + " of the queue " + quoted(what.queue) +
                      " has the key " + quoted(what.key),
                  owner.integer(0));
}

}  // namespace

connection open_connection(const std::string& file, connection::durability level, const settings& with) {
  connection result(file, level, with.patience);
  if (with.connected) with.connected(result.handle());
  bring_up_to_date(result, with.steps);
  return result;
}

task task_of(const rows& row) {
  return {.id = row.integer(0),
          .queue = row.text(1),
          .key = row.text(2),
          .payload = row.text(6),
          .due = wall_time_of(row.integer(3)),
          .attempt = static_cast<int>(row.integer(4)),
          .fence = row.integer(5)};
}

file_engine::file_engine(std::string file, settings with) : file_(std::move(file)), with_(std::move(with)) {
  own_.emplace(open_connection(file_, connection::durability::full, with_));
}

connection file_engine::theirs(const transaction& in) const {
  if (in.sqlite() == nullptr) {
    throw std::invalid_argument("rondo: the transaction is PostgreSQL's, but the store is SQLite's (" +
                                file_ + ")");
  }
  const char* file = sqlite3_db_filename(in.sqlite(), "main");
  std::error_code none;
  if (file == nullptr || (file_ != file && !std::filesystem::equivalent(file_, file, none))) {
    throw std::invalid_argument("rondo: the transaction is in the database " +
                                quoted(file == nullptr ? "" : file) + ", but the store is in " +
                                quoted(file_));
  }
  return connection(in.sqlite());
}

template <class Function>
auto file_engine::on(const transaction* in, Function f) {
  if (in != nullptr) {
    connection database = theirs(*in);
    return f(database);
  }
  const std::lock_guard lock(mutex_);
  if (!own_) own_.emplace(open_connection(file_, connection::durability::full, with_));
  try {
    return f(*own_);
  } catch (const error& e) {
    if (e.broken()) own_.reset();
    throw;
  }
}

std::int64_t file_engine::microseconds_until(const due_time& due) const {
  if (const auto* delay = std::get_if<duration>(&due)) {
    return microseconds_of(with_.clock()) + microseconds_of(*delay);
  }
  return microseconds_of(std::get<wall_time>(due));
}

std::int64_t file_engine::submit(const due_time& due, const submission& what, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    if (what.replace && !what.key.empty()) cancel_by_key(database, what.queue, what.key);
    std::int64_t id = 0;
    {
      rows added = database.query(
          "INSERT INTO rondo_task (queue, key, due, payload) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING "
          "RETURNING id",
          what.queue, text_or_null{what.key}, microseconds_until(due), blob{what.payload});
      while (added.next()) id = added.integer(0);
    }
    if (id == 0) refuse_key(database, what);
    all.commit();
    return id;
  });
}

bool file_engine::cancel(std::int64_t id, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const bool removed = cancel_by_id(database, id);
    all.commit();
    return removed;
  });
}

bool file_engine::cancel(const std::string& queue, const std::string& key, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const bool removed = cancel_by_key(database, queue, key);
    all.commit();
    return removed;
  });
}

bool file_engine::reschedule(std::int64_t id, const due_time& due, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    // The greater fence keeps the dispatcher that holds the task from beginning it.
    const int moved = database.change(
        "UPDATE rondo_task SET state = 0, due = ?, fence = fence + 1, owner = NULL, lease_until = NULL"
        " WHERE id = ? AND state IN (0, 1)",
        microseconds_until(due), id);
    all.commit();
    return moved != 0;
  });
}

std::optional<task> file_engine::find(std::int64_t id, const transaction* in) {
  return on(in, [&](connection& database) -> std::optional<task> {
    rows found = database.query(
        "SELECT id, queue, key, due, attempt, fence, payload FROM rondo_task WHERE id = ? AND state <> 3",
        id);
    if (!found.next()) return std::nullopt;
    return task_of(found);
  });
}

std::unique_ptr<session> file_engine::connect(const std::string& owner, const claim_rules& rules) {
  return std::make_unique<file_session>(file_, with_, owner, rules);
}

std::shared_ptr<engine> open(const std::string& file, settings with) {
  if (file.empty()) throw store_error("rondo: the URL \"sqlite:\" names no file");
  if (file == ":memory:") {
    throw store_error(
        "rondo: a store cannot be in memory (\"sqlite::memory:\"): its connections would not see each other");
  }
  // An absolute path names the same file after chdir(), and SQLite never takes it for a URI, as it would
  // "file:a?mode=ro".
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);
  return std::make_shared<file_engine>(failed ? file : path.string(), std::move(with));
}

}  // namespace sqlite

std::shared_ptr<engine> open_sqlite(const std::string& file) { return sqlite::open(file, {}); }

}  // namespace rondo::durable::detail
