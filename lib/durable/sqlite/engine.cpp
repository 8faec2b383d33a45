#include "durable/sqlite/engine.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "durable/microseconds.hpp"
#include "durable/store_access.hpp"
#include "durable/schedule_access.hpp"
#include "durable/sqlite/session.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace sqlite {

namespace {

/// Removes a task that is not running, and returns true. A running task ends with its run; returns false.
bool cancel_by_id(connection& database, std::int64_t id) {
  if (database.change("DELETE FROM rondo_task WHERE id = ? AND state IN ({not_begun})", id) != 0) return true;
  database.change("UPDATE rondo_task SET state = {cancelled}, key = NULL WHERE id = ? AND state = {running}",
                  id);
  return false;
}

// (The planner needs state <> {dead}, which is the condition of the index.)
bool cancel_by_key(connection& database, const std::string& queue, const std::string& key) {
  if (database.change(
          "DELETE FROM rondo_task WHERE queue = ? AND key = ? AND state <> {dead} AND state IN ({not_begun})",
          queue, key) != 0) {
    return true;
  }
  database.change(
      "UPDATE rondo_task SET state = {cancelled}, key = NULL WHERE queue = ? AND key = ? AND state <> {dead} "
      "AND state = {running}",
      queue, key);
  return false;
}

#define RONDO_INSERT(columns, values)                                                            \
  "INSERT INTO rondo_task (queue, key, due, max_attempts, inline_payload, payload_apart" columns \
  ") VALUES "                                                                                    \
  "(?1, ?2, ?3, ?4, ?5, ?6" values ") ON CONFLICT DO NOTHING"

/// Returns the new task's id, or 0 if its key is taken. (A trigger could give the task its place in the lane. But for the
/// caller's connection, which keeps no statement of ours, it would have to be compiled each time: 225 us instead of 12.)
std::int64_t insert(connection& database, const submission& what, std::int64_t due) {
  const bool apart = lies_apart(what.payload);
  const std::string nothing;
  const auto insert_with = [&](const char* sql, const auto&... lane) {
    return database.change(sql, what.queue, text_or_null{what.key}, due, std::int64_t{what.max_attempts},
                           blob{apart ? nothing : what.payload},
                           static_cast<std::int64_t>(apart ? what.payload.size() : 0), lane...) != 0;
  };
  const bool is_new =
      what.lane.empty()
          ? insert_with(RONDO_INSERT("", ""))
          : insert_with(
                RONDO_INSERT(", lane, place, state",
                             ", ?7, ?3, iif(EXISTS (SELECT 1 FROM rondo_task WHERE queue = ?1 AND lane = ?7 "
                             "AND place <= ?3), {behind}, {in_lane})"),
                what.lane);
  if (!is_new) {
    return 0;
  }
  const std::int64_t id = sqlite3_last_insert_rowid(database.handle());
  // With SELECT instead of VALUES, SQLite can undo this statement alone when the disk is full; otherwise it would undo
  // all of the caller's transaction.
  if (apart) database.change("INSERT INTO rondo_payload (id, payload) SELECT ?, ?", id, blob{what.payload});
  return id;
}

#undef RONDO_INSERT

/// How many simple tasks one statement adds. SQLite prepares to undo each statement alone, which costs more than a row.
constexpr std::size_t in_one_statement = 50;

bool is_simple(const planned& p) {
  return p.what.key.empty() && p.what.lane.empty() && !lies_apart(p.what.payload);
}

/// Adds simple tasks, in_one_statement of them. Returns the first id; those of the others follow it.
template <class Due>
std::int64_t insert_simple(connection& database, std::span<const planned> all, Due due_of) {
  static const std::string sql = [] {
    std::string text =
        "INSERT INTO rondo_task (queue, due, max_attempts, inline_payload) VALUES (?, ?, ?, ?)";
    for (std::size_t i = 1; i != in_one_statement; ++i) text += ", (?, ?, ?, ?)";
    return text;
  }();
  rows added = database.query(sql.c_str());
  int place = 0;
  for (const planned& p : all) {
    added.bind(++place, p.what.queue);
    added.bind(++place, due_of(p.when));
    added.bind(++place, std::int64_t{p.what.max_attempts});
    added.bind(++place, blob{p.what.payload});
  }
  added.next();
  return sqlite3_last_insert_rowid(database.handle()) - static_cast<std::int64_t>(all.size()) + 1;
}

/// Throws key_taken if the queue has a live task with the key.
void refuse_if_taken(connection& database, const submission& what) {
  rows owner = database.query("SELECT id FROM rondo_task WHERE queue = ? AND key = ? AND state <> {dead}",
                              what.queue, what.key);
  if (owner.next()) refuse_key(what, owner.integer(0));
}

std::int64_t submit_in(connection& database, const submission& what, std::int64_t due) {
  if (what.replace && !what.key.empty()) cancel_by_key(database, what.queue, what.key);
  const std::int64_t id = insert(database, what, due);
  if (id == 0) refuse_if_taken(database, what);
  return id;
}

/// Removes or writes the payload that lies apart.
void replace_payload(connection& database, std::int64_t id, const std::string& payload) {
  if (lies_apart(payload)) {
    database.change(
        "INSERT INTO rondo_payload (id, payload) SELECT ?, ? WHERE true"
        " ON CONFLICT (id) DO UPDATE SET payload = excluded.payload",
        id, blob{payload});
  } else {
    database.change("DELETE FROM rondo_payload WHERE id = ?", id);
  }
}

/// The live task that has the key, and whether it is equal.
struct declared {
  std::int64_t id = 0;  // 0 if there is none
  bool is_equal = false;
};

declared find_declared(connection& database, const repeated& what, const std::string& schedule) {
  rows row = database.query(
      "SELECT id, schedule = ? AND missed = ? AND coalesce(next_lane, lane, '') = ? AND " RONDO_PAYLOAD
      " = ?, schedule IS NULL FROM rondo_task WHERE queue = ? AND key = ? AND state <> {dead}",
      schedule, static_cast<std::int64_t>(what.missed), what.lane, blob{what.payload}, what.queue, what.key);
  if (!row.next()) return {};
  if (row.integer(2) != 0) refuse_key({.queue = what.queue, .key = what.key}, row.integer(0));
  return {row.integer(0), row.integer(1) != 0};
}

/// Returns the id of the repeated task.
std::int64_t declare(connection& database, const repeated& what, wall_time now) {
  const std::string schedule = what.when.text();
  const declared there = find_declared(database, what, schedule);
  if (there.is_equal) return there.id;
  const zoned_point first = checked_point(what, first_point(what.when, now));
  const std::int64_t point = microseconds_of(first.at);
  const std::int64_t id =
      there.id != 0
          ? there.id
          : insert(database, {.queue = what.queue, .payload = what.payload, .key = what.key}, point);
  const std::string nothing;
  const bool apart = lies_apart(what.payload);
  // What runs ends before the next point is due, and its fence and lane stay. (Its place is that of the point, so that the
  // lane does not wait for that once the run has ended.) Whoever holds the task must claim it anew.
  database.change(
      "UPDATE rondo_task SET schedule = ?1, missed = ?2, inline_payload = ?4, payload_apart = ?5,"
      " lane = iif(state = {running}, lane, ?3), next_lane = iif(state = {running} AND lane IS NOT ?3, "
      "ifnull(?3, ''), NULL),"
      " due = ?6, point = ?6, point_offset = ?8, attempt = 0, reason = NULL, state = iif(state = {running}, "
      "{running}, {waiting}),"
      " place = iif(state = {running} AND lane IS NOT NULL, ?6, NULL), fence = fence + (state <> {running}),"
      " owner = iif(state = {running}, owner, NULL), lease_until = iif(state = {running}, lease_until, NULL) "
      "WHERE id = ?7",
      schedule, static_cast<std::int64_t>(what.missed), text_or_null{what.lane},
      blob{apart ? nothing : what.payload}, static_cast<std::int64_t>(apart ? what.payload.size() : 0), point,
      id, offset_of(first));
  if (there.id != 0) replace_payload(database, id, what.payload);
  return id;
}

listed listed_of(const rows& row) {
  return {task_of(row), task_state_of(row.integer(8)), row.text(9), row.text(10)};
}

#define RONDO_LIST(states)                                     \
  "SELECT id, queue, key, due, attempt, fence, " RONDO_PAYLOAD \
  ", point, state, owner, reason FROM rondo_task WHERE queue = ? AND id > ?" states " ORDER BY id LIMIT ?"

const char* list_statement(std::optional<task_state> only) {
  if (!only) return RONDO_LIST("");
  switch (*only) {
    case task_state::waiting:
      return RONDO_LIST(" AND state IN ({any_waiting})");
    case task_state::held:
      return RONDO_LIST(" AND state = {held}");
    case task_state::running:
      return RONDO_LIST(" AND state IN ({begun})");
    case task_state::dead:
      return RONDO_LIST(" AND state = {dead}");
  }
  throw std::invalid_argument("rondo: there is no task_state " + std::to_string(static_cast<int>(*only)));
}

#undef RONDO_LIST

}  // namespace

connection open_connection(const std::string& file, const settings& with, when_absent what) {
  connection result(file, with.patience, what);
  if (with.checkpoints) with.checkpoints->watch(result);
  if (with.connected) with.connected(result.handle());
  bring_up_to_date(result, with.steps);
  return result;
}

bool is_paused(connection& database, const std::string& queue) {
  return database.query("SELECT 1 FROM rondo_paused WHERE queue = ?", queue).next();
}

task task_of(const rows& row) {
  return {.id = row.integer(0),
          .queue = row.text(1),
          .key = row.text(2),
          .payload = row.text(6),
          .due = wall_time_of(row.integer(3)),
          .attempt = static_cast<int>(row.integer(4)),
          .fence = row.integer(5),
          .point = row.null(7) ? std::nullopt : std::optional(wall_time_of(row.integer(7)))};
}

file_engine::file_engine(std::string file, settings with)
    : file_(std::move(file)),
      with_(std::move(with)),
      log_(std::make_shared<log_file>(file_, with_.patience)) {
  with_.checkpoints = std::make_shared<checkpointer>(file_, log_);
  with_.leave_old_file = [this] {
    const std::lock_guard lock(mutex_);
    leave_old_file();
  };
  connect(when_absent::create);
}

void file_engine::connect(when_absent what) {
  connection fresh = open_connection(file_, with_, what);
  {
    rows syncs = fresh.query("PRAGMA synchronous");
    syncs.next();
    syncs_ = syncs.integer(0) != 0;  // tests turn it off
  }
  log_->open(fresh);
  own_.emplace(std::move(fresh));
}

/// Closes the connection if the file has been replaced: while this process has an old file open, it cannot open it anew
/// under its name. Throws store_error if it has been removed. Precondition: the lock is held.
void file_engine::leave_old_file() {
  if (!own_ || own_->is_in_place()) return;
  own_->give_up();
  own_.reset();
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
  if (has_moved(in.sqlite()))
    throw store_error(
        "rondo: SQLite, " + file_ +
        ": the file that the transaction's connection has open has been removed or replaced: that "
        "connection must be closed and opened anew");
  return connection(in.sqlite());
}

template <class Function>
auto file_engine::on(const transaction* in, Function f) {
  if (in != nullptr) {
    connection database = theirs(*in);
    return f(database);
  }
  bool must_sync = false;
  auto result = [&] {
    const std::lock_guard lock(mutex_);
    leave_old_file();
    if (!own_) connect(when_absent::refuse);
    try {
      auto done = f(*own_);
      must_sync = own_->has_committed() && syncs_;
      return done;
    } catch (const error& e) {
      if (e.broken()) own_.reset();
      throw;
    }
  }();
  if (must_sync) log_->sync();
  return result;
}

std::int64_t file_engine::microseconds_until(const due_time& due) const {
  if (const auto* delay = std::get_if<duration>(&due)) {
    return microseconds_of(with_.clock()) + microseconds_of_delay(*delay);
  }
  return microseconds_of(std::get<wall_time>(due));
}

void file_engine::tell(std::int64_t due, const transaction* in) const {
  if (in == nullptr && due < microseconds_of(with_.clock() + soon)) with_.due_soon->publish();
}

std::int64_t file_engine::submit(const due_time& due, const submission& what, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const std::int64_t when = microseconds_until(due);
    const std::int64_t id = submit_in(database, what, when);
    all.commit();
    tell(when, in);
    return id;
  });
}

std::vector<std::int64_t> file_engine::submit_all(std::span<const planned> list, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const std::size_t repeated = first_repeated_key(list);
    std::vector<std::int64_t> ids;
    ids.reserve(list.size());
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    const auto due_of = [&](const due_time& when) {
      const std::int64_t due = microseconds_until(when);
      earliest = std::min(earliest, due);
      return due;
    };
    while (ids.size() != repeated) {
      const auto rest = list.subspan(ids.size(), std::min(in_one_statement, repeated - ids.size()));
      if (rest.size() == in_one_statement && std::ranges::all_of(rest, is_simple)) {
        const std::int64_t first = insert_simple(database, rest, due_of);
        for (std::size_t i = 0; i != rest.size(); ++i) ids.push_back(first + static_cast<std::int64_t>(i));
      } else {
        ids.push_back(submit_in(database, rest.front().what, due_of(rest.front().when)));
      }
    }
    if (repeated != list.size()) refuse_key(list[repeated].what, 0);
    all.commit();
    tell(earliest, in);
    return ids;
  });
}

std::int64_t file_engine::repeat(const repeated& what, const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const wall_time now = with_.clock();
    const std::int64_t id = declare(database, what, now);
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
    const std::int64_t when = microseconds_until(due);
    // The greater fence keeps the dispatcher that holds the task from beginning it. A trigger gives it another place.
    const int moved = database.change(
        "UPDATE rondo_task SET state = {waiting}, due = ?, place = NULL, fence = fence + 1, owner = NULL,"
        " lease_until = NULL"
        " WHERE id = ? AND state IN ({not_begun})",
        when, id);
    all.commit();
    tell(when, in);
    return moved != 0;
  });
}

bool file_engine::reschedule(const std::string& queue, const std::string& key, const due_time& due,
                             const transaction* in) {
  return on(in, [&](connection& database) {
    unit_of_work all(database);
    const std::int64_t when = microseconds_until(due);
    const int moved = database.change(
        "UPDATE rondo_task SET state = {waiting}, due = ?, place = NULL, fence = fence + 1, owner = NULL,"
        " lease_until = NULL"
        " WHERE queue = ? AND key = ? AND state <> {dead} AND state IN ({not_begun})",
        when, queue, key);
    all.commit();
    tell(when, in);
    return moved != 0;
  });
}

std::optional<task> file_engine::find(std::int64_t id, const transaction* in) {
  return on(in, [&](connection& database) -> std::optional<task> {
    rows found = database.query("SELECT id, queue, key, due, attempt, fence, " RONDO_PAYLOAD
                                ", point FROM rondo_task WHERE id = ? AND state <> {dead}",
                                id);
    if (!found.next()) return std::nullopt;
    return task_of(found);
  });
}

std::optional<task> file_engine::find(const std::string& queue, const std::string& key,
                                      const transaction* in) {
  return on(in, [&](connection& database) -> std::optional<task> {
    rows found = database.query("SELECT id, queue, key, due, attempt, fence, " RONDO_PAYLOAD
                                ", point FROM rondo_task WHERE queue = ? AND key = ? AND state <> {dead}",
                                queue, key);
    if (!found.next()) return std::nullopt;
    return task_of(found);
  });
}

void file_engine::pause(const std::string& queue) {
  on(nullptr, [&](connection& database) {
    unit_of_work all(database);
    database.change("INSERT INTO rondo_paused (queue) VALUES (?) ON CONFLICT DO NOTHING", queue);
    all.commit();
    return true;
  });
}

void file_engine::resume(const std::string& queue) {
  on(nullptr, [&](connection& database) {
    unit_of_work all(database);
    database.change("DELETE FROM rondo_paused WHERE queue = ?", queue);
    all.commit();
    return true;
  });
}

bool file_engine::paused(const std::string& queue) {
  return on(nullptr, [&](connection& database) { return is_paused(database, queue); });
}

std::vector<listed> file_engine::list(const std::string& queue, std::optional<task_state> only,
                                      std::int64_t after_id, std::size_t limit) {
  return on(nullptr, [&](connection& database) {
    std::vector<listed> all;
    rows found = database.query(list_statement(only), queue, after_id, in_64_bits(limit));
    while (found.next()) all.push_back(listed_of(found));
    return all;
  });
}

bool file_engine::retry(std::int64_t id) {
  return on(nullptr, [&](connection& database) {
    unit_of_work all(database);
    submission what;
    {
      rows dead = database.query("SELECT queue, key FROM rondo_task WHERE id = ? AND state = {dead}", id);
      if (!dead.next()) return false;
      what.queue = dead.text(0);
      what.key = dead.text(1);
    }
    if (!what.key.empty()) refuse_if_taken(database, what);
    database.change(
        "UPDATE rondo_task SET state = {waiting}, attempt = 0, due = ?, place = NULL, reason = NULL WHERE id "
        "= ?",
        microseconds_of(with_.clock()), id);
    all.commit();
    return true;
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
