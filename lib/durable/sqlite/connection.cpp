#include "durable/sqlite/connection.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "durable/sqlite/advice.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

/// Why this process may not write to the file, or make it. (If SQLite cannot open a file for writing it tries to read it,
/// and keeps only the error of that.)
int reason_against_writing(const std::string& file) {
  if (::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0) return 0;
  if (errno != ENOENT) return errno;
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

constexpr const char* is_removed =
    "the file has been removed: until there is one again, nothing can be submitted or run";

/// What SQLite would not refuse.
void check_file(const std::string& file, when_absent what) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno != ENOENT || what == when_absent::create) return;  // other errors are for SQLite to report
    throw error("rondo: SQLite, " + file + ": " + is_removed, SQLITE_NOTFOUND);
  }
  if (S_ISREG(found.st_mode) && found.st_nlink > 1 && what == when_absent::create) {
    throw error(
        "rondo: SQLite, " + file + ": the file has " + std::to_string(found.st_nlink) +
            " names (hard links), and SQLite finds its log by the name: processes that used different "
            "names would damage it. Remove the others, or copy the file",
        SQLITE_CANTOPEN);
  }
  if (found.st_size == 0 && what == when_absent::refuse) {
    throw error("rondo: SQLite, " + file +
                    ": the file has been replaced by an empty one. (A database that is put there while this "
                    "process runs must be complete: rename it)",
                SQLITE_NOTFOUND);
  }
}

}  // namespace

bool error::broken() const noexcept {
  switch (code()) {
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return true;
    default:
      return false;
  }
}

bool has_moved(sqlite3* database) noexcept {
  int has = 0;
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_HAS_MOVED, &has) == SQLITE_OK && has != 0;
}

void fail(sqlite3* database, int code, bool perhaps_done) {
  const char* file = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  const char* said = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  const int reason = database == nullptr ? 0 : sqlite3_system_errno(database);
  throw error(
      "rondo: SQLite, " + std::string(file == nullptr ? "" : file) + ": " + said + advice_on(code, reason),
      code, perhaps_done);
}

rows::~rows() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);  // they may be large, and belong to the caller
}

void rows::bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_, index, value)); }

void rows::bind(int index, std::optional<std::int64_t> value) {
  if (value)
    bind(index, *value);
  else
    check(sqlite3_bind_null(statement_, index));
}

void rows::bind(int index, const std::string& value) {
  check(sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void rows::bind(int index, blob value) {
  check(sqlite3_bind_blob64(statement_, index, value.bytes.data(), value.bytes.size(), SQLITE_STATIC));
}

void rows::bind(int index, text_or_null value) {
  if (value.text.empty()) {
    check(sqlite3_bind_null(statement_, index));
  } else {
    bind(index, value.text);
  }
}

bool rows::next() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
  return code == SQLITE_ROW;
}

std::string rows::text(int column) const {
  // SQLite returns UTF-8, whatever the encoding of the database.
  const void* bytes = sqlite3_column_type(statement_, column) == SQLITE_BLOB
                          ? sqlite3_column_blob(statement_, column)
                          : sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

void rows::check(int code) const {
  if (code != SQLITE_OK) fail(sqlite3_db_handle(statement_), code);
}

connection::connection(const std::string& file, std::chrono::milliseconds patience, when_absent what)
    : lock_(file_lock::of(file)) {
  check_file(file, what);
  lock_->check_noticed(file);  // before SQLite makes a file
  sqlite3* opened = nullptr;
  const int creates = what == when_absent::create ? SQLITE_OPEN_CREATE : 0;
  const int code =
      sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | creates, nullptr);
  handle_.reset(opened);
  if (code != SQLITE_OK) {
    const int told = opened == nullptr ? 0 : sqlite3_system_errno(opened);
    const int found = reason_against_writing(file);
    const int reason = found != 0 ? found : told;
    throw error("rondo: SQLite, " + file + ": " + sqlite3_errstr(code) + advice_on(code, reason), code);
  }
  wait_ = std::make_unique<lock_wait>(lock_wait{.patience = patience});
  sqlite3_busy_handler(opened, nap, wait_.get());
  // SQLite opens a file that it cannot write read-only.
  if (sqlite3_db_readonly(opened, "main") == 1) {
    throw error("rondo: SQLite, " + file + ": the file cannot be written" +
                    advice_on(SQLITE_READONLY, reason_against_writing(file)),
                SQLITE_READONLY);
  }
  files_ = lock_->files(sqlite3_db_filename(opened, "main"));
  if (has_moved(opened)) refuse("the file has been replaced while it was opened", SQLITE_CANTOPEN);
  use_wal(patience);
  execute("SELECT 1 FROM sqlite_schema LIMIT 1");  // opens the log
  execute("PRAGMA synchronous = NORMAL");
  files_->note_log();
  handle_.get_deleter().of_log = files_;
}

connection::connection(sqlite3* theirs) : handle_(theirs, closer{false}) {}

/// SQLite's own handler sleeps for up to 100 ms at a time, and misses the microseconds in which a busy lock is free.
/// (Beside four threads that submit without a pause, tasks were late by 0.7 to 9 s (p50) with it, and turns failed. With
/// these naps it is 11 to 14 ms, at most 65 ms, and with the turns of file_lock 4 ms, at most 6 ms; none fails.)
int connection::nap(void* self, int naps_before) noexcept {
  auto& wait = *static_cast<lock_wait*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (naps_before == 0 && !wait.has_begun) wait.until = now + wait.patience;
  if (now >= wait.until) return 0;
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  return 1;
}

file_lock::holder connection::begin_to_write() {
  // One patience for both waits, for connections of this process and for others.
  *wait_ = {.patience = wait_->patience,
            .until = std::chrono::steady_clock::now() + wait_->patience,
            .has_begun = true};
  const struct end {
    lock_wait* of;
    ~end() { of->has_begun = false; }
  } at_end{wait_.get()};
  file_lock::holder turn = lock_->lock_until(wait_->until);
  if (turn == nullptr) {
    refuse(std::string(sqlite3_errstr(SQLITE_BUSY)) + advice_on(SQLITE_BUSY), SQLITE_BUSY);
  }
  change("BEGIN IMMEDIATE");
  struct rollback {
    void operator()(sqlite3* of) const noexcept { sqlite3_exec(of, "ROLLBACK", nullptr, nullptr, nullptr); }
  };
  std::unique_ptr<sqlite3, rollback> begun(handle());  // the system may refuse to say where the file is
  if (is_in_place()) {
    static_cast<void>(begun.release());
    return turn;
  }
  begun.reset();
  give_up();
  refuse("the file has been replaced: the new one is opened next", SQLITE_CANTOPEN);
}

void connection::give_up() {
  files_->give_up([this] {
    // What has been committed belongs to the old file, which may still have another name.
    int in_log = 0;
    int copied = 0;
    const int code =
        sqlite3_wal_checkpoint_v2(handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
    if ((code & 0xFF) == SQLITE_BUSY || (code == SQLITE_OK && copied < in_log))
      refuse("the file has been removed or replaced, and another connection still reads it", SQLITE_BUSY);
    if ((code & 0xFF) == SQLITE_FULL) fail(handle(), code);
  });
  if (!files_->has_successor()) refuse(is_removed, SQLITE_NOTFOUND);
}

void connection::refuse(const std::string& why, int code) const {
  throw error("rondo: SQLite, " + std::string(sqlite3_db_filename(handle(), "main")) + ": " + why, code);
}

void connection::use_wal(std::chrono::milliseconds patience) {
  // If several processes change the mode of a new database at once, SQLite refuses some of them without waiting.
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    try {
      rows mode = query("PRAGMA journal_mode = WAL");
      mode.next();
      if (mode.text(0) == "wal") return;
      refuse("the database cannot have a write-ahead log; it is in mode " + mode.text(0), SQLITE_CANTOPEN);
    } catch (const error& e) {
      if (e.code() != SQLITE_BUSY || std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

rows connection::begin(const char* sql) {
  const auto found = kept_.find(sql);
  if (found != kept_.end()) return rows(found->second.get());
  sqlite3_stmt* made = nullptr;
  const int code = sqlite3_prepare_v3(handle(), with_states(sql).c_str(), -1,
                                      theirs() ? 0 : SQLITE_PREPARE_PERSISTENT, &made, nullptr);
  compiled statement(made);
  if (code != SQLITE_OK) fail(handle(), code);
  return rows(kept_.emplace(sql, std::move(statement)).first->second.get());
}

void connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(handle(), code);
}

unit_of_work::unit_of_work(connection& database) : database_(&database) {
  if (database.theirs()) {
    database.change("SAVEPOINT rondo");
  } else {
    turn_ = database.begin_to_write();
  }
}

unit_of_work::~unit_of_work() {
  // After some errors SQLite has already undone the entire transaction.
  if (database_ == nullptr || sqlite3_get_autocommit(database_->handle()) != 0) return;
  const char* undo = database_->theirs() ? "ROLLBACK TO rondo; RELEASE rondo" : "ROLLBACK";
  sqlite3_exec(database_->handle(), undo, nullptr, nullptr, nullptr);
}

void unit_of_work::commit() {
  try {
    database_->change(database_->theirs() ? "RELEASE rondo" : "COMMIT");
  } catch (const error& e) {
    // The transaction may still be in the log, and then takes effect after a crash.
    if (e.code() == SQLITE_IOERR && !database_->theirs()) throw error(e.what(), SQLITE_IOERR, true);
    throw;
  }
  std::exchange(database_, nullptr)->has_committed_ = true;
}

}  // namespace rondo::durable::detail::sqlite
