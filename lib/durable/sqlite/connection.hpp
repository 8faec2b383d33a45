// The parts of SQLite's C interface that the store needs, with owning objects instead of pointers. A connection is used
// by one thread at a time.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <rondo/durable.hpp>

#include "durable/sqlite/file_lock.hpp"
#include "durable/sqlite/opened_files.hpp"

namespace rondo::durable::detail::sqlite {

/// An error that SQLite reported.
class error : public store_error {
 public:
  error(const std::string& what, int code, bool perhaps_done = false)
      : store_error(what, perhaps_done), code_(code) {}
  int code() const noexcept { return code_ & 0xFF; }  // the primary code, without SQLite's extension
  /// Whether the connection is no longer usable.
  bool broken() const noexcept;

 private:
  int code_;
};

/// Whether the name of the file that it has open leads elsewhere, or nowhere.
bool has_moved(sqlite3* database) noexcept;

/// Throws an error with SQLite's message about its last call, and advice for operators.
[[noreturn]] void fail(sqlite3* database, int code, bool perhaps_done = false);

///@{
/// Parameters of statements, in addition to numbers and texts. They must outlive the rows.
struct blob {
  const std::string& bytes;
};
struct text_or_null {
  const std::string& text;  // bound as NULL if empty
};
///@}

struct finalizer {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using compiled = std::unique_ptr<sqlite3_stmt, finalizer>;

/// A statement in progress, row by row. Must be destroyed before its statement is used again or its transaction ends.
class rows {
 public:
  explicit rows(sqlite3_stmt* kept) noexcept : statement_(kept) {}
  rows(rows&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  rows& operator=(rows&&) = delete;
  rows(const rows&) = delete;
  rows& operator=(const rows&) = delete;
  ~rows();

  void bind(int index, std::int64_t value);
  void bind(int index, std::optional<std::int64_t> value);
  void bind(int index, const std::string& value);
  void bind(int index, blob value);
  void bind(int index, text_or_null value);

  bool next();
  bool null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;  // also for a blob; empty for NULL

 private:
  void check(int code) const;

  sqlite3_stmt* statement_;
};

struct closer {
  bool close = true;                          // false if the connection is the caller's
  std::shared_ptr<opened_files> of_log = {};  // null if note_log() has not been called for it
  void operator()(sqlite3* handle) const noexcept {
    if (!close) return;
    if (of_log != nullptr)
      of_log->close_log([&] { sqlite3_close(handle); });
    else
      sqlite3_close(handle);
  }
};

/// If there is no file, or an empty one.
enum class when_absent { create, refuse };

class connection {
 public:
  /// Opens the file. Calls that find it locked retry for `patience`. What is committed outlives the process, but a power
  /// cut only after log_file::sync().
  connection(const std::string& file, std::chrono::milliseconds patience,
             when_absent what = when_absent::refuse);
  /// Uses the caller's connection. It stays open, and has no statement of ours after this object has been destroyed.
  explicit connection(sqlite3* theirs);

  /// `sql` must be a literal, as its address identifies the kept statement.
  template <class... Parameter>
  rows query(const char* sql, const Parameter&... parameters) {
    rows result = begin(sql);
    [[maybe_unused]] int index = 0;  // unused if there are no parameters
    (result.bind(++index, parameters), ...);
    return result;
  }

  /// Returns the number of rows that were changed.
  template <class... Parameter>
  int change(const char* sql, const Parameter&... parameters) {
    rows all = query(sql, parameters...);
    while (all.next()) {
    }
    return sqlite3_changes(handle_.get());
  }

  /// Executes any statements, and keeps none.
  void execute(const std::string& sql);

  sqlite3* handle() const noexcept { return handle_.get(); }
  bool theirs() const noexcept { return !handle_.get_deleter().close; }

  /// Whether the names of the database and its log still lead to what this connection has open.
  bool is_in_place() const { return files_->are_in_place(); }
  /// To be called if it is not, so that nobody takes the log for that of another database. Throws error: not broken() if
  /// the file has been removed. (What it contained can then be copied from /proc as long as this connection is open.)
  void give_up();

  /// Begins a transaction with the write lock, when it is this connection's turn. The result must be kept until the
  /// transaction has ended. For a connection of ours. Throws a broken() error if the file has been replaced.
  file_lock::holder begin_to_write();

  /// Whether a unit of work has been committed since the last call.
  bool has_committed() noexcept { return std::exchange(has_committed_, false); }

 private:
  friend class unit_of_work;

  /// A wait for another connection's lock.
  struct lock_wait {
    std::chrono::milliseconds patience{};
    std::chrono::steady_clock::time_point until{};
    bool has_begun = false;  // with the wait for this connection's turn, and `until` is set
  };

  [[noreturn]] void refuse(const std::string& why, int code) const;
  static int nap(void* self, int naps_before) noexcept;
  rows begin(const char* sql);
  void use_wal(std::chrono::milliseconds patience);

  std::shared_ptr<file_lock> lock_;  // null if the connection is the caller's
  std::shared_ptr<opened_files> files_;
  std::unique_ptr<lock_wait> wait_;  // SQLite keeps a pointer to it
  std::unique_ptr<sqlite3, closer> handle_;
  std::unordered_map<const char*, compiled> kept_;
  bool has_committed_ = false;
};

/// Several statements that take effect together or not at all. On a connection of ours this is a transaction, which has
/// the write lock from the beginning; on the caller's connection, a part of the caller's transaction.
class unit_of_work {
 public:
  explicit unit_of_work(connection& database);
  unit_of_work(const unit_of_work&) = delete;
  unit_of_work& operator=(const unit_of_work&) = delete;
  ~unit_of_work();  // undoes everything unless committed

  void commit();

 private:
  connection* database_;  // null once committed
  file_lock::holder turn_;
};

}  // namespace rondo::durable::detail::sqlite
