// The SQLite C interface, as far as the store needs it, with owners instead of pointers. A connection is used by one
// thread at a time.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <rondo/durable.hpp>

namespace rondo::durable::detail::sqlite {

/// What SQLite refused.
class error : public store_error {
 public:
  error(const std::string& what, int code, bool perhaps_done = false)
      : store_error(what, perhaps_done), code_(code) {}
  int code() const noexcept { return code_ & 0xFF; }  // without what SQLite adds to its primary codes
  /// The connection is of no use any more.
  bool broken() const noexcept;

 private:
  int code_;
};

/// Throws what SQLite says about its last call, in words for operators.
[[noreturn]] void fail(sqlite3* database, int code, bool perhaps_done = false);

///@{
/// Parameters of statements, besides numbers and texts. They have to outlive the rows.
struct blob {
  const std::string& bytes;
};
struct text_or_null {
  const std::string& text;  // empty: NULL
};
///@}

struct finalizer {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using compiled = std::unique_ptr<sqlite3_stmt, finalizer>;

/// A statement in progress, row by row. To be destroyed before its statement is used again, or its transaction ends.
class rows {
 public:
  explicit rows(sqlite3_stmt* kept) noexcept : statement_(kept) {}
  explicit rows(compiled own) noexcept : statement_(own.get()), own_(std::move(own)) {}
  rows(rows&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), own_(std::move(other.own_)) {}
  rows& operator=(rows&&) = delete;
  rows(const rows&) = delete;
  rows& operator=(const rows&) = delete;
  ~rows();

  void bind(int place, std::int64_t value);
  void bind(int place, const std::string& value);
  void bind(int place, blob value);
  void bind(int place, text_or_null value);

  bool next();
  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;  // a blob likewise; NULL: empty

 private:
  void check(int code) const;

  sqlite3_stmt* statement_;
  compiled own_;  // null: the connection keeps it
};

struct closer {
  bool close = true;  // false: it is the caller's
  void operator()(sqlite3* handle) const noexcept {
    if (close) sqlite3_close(handle);
  }
};

class connection {
 public:
  enum class durability { full, normal };

  /// Opens the file, or creates an empty database. A call that finds it locked tries again for `patience`.
  connection(const std::string& file, durability level, std::chrono::milliseconds patience);
  /// The caller's: it stays open, and no statement is kept.
  explicit connection(sqlite3* theirs);

  /// `sql` is a literal: a statement is kept by its address.
  template <class... Parameter>
  rows query(const char* sql, const Parameter&... parameters) {
    rows result = begin(sql);
    int place = 0;
    (result.bind(++place, parameters), ...);
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

  /// Any statements, not kept.
  void execute(const std::string& sql);

  sqlite3* handle() const noexcept { return handle_.get(); }
  bool theirs() const noexcept { return !handle_.get_deleter().close; }

 private:
  rows begin(const char* sql);
  void use_wal(std::chrono::milliseconds patience);

  std::unique_ptr<sqlite3, closer> handle_;
  std::unordered_map<const char*, compiled> kept_;
};

/// Several statements that take effect together, or not at all. On a connection of ours a transaction, which has the
/// write lock from the beginning; on the caller's a part of his.
class unit_of_work {
 public:
  explicit unit_of_work(connection& database);
  unit_of_work(const unit_of_work&) = delete;
  unit_of_work& operator=(const unit_of_work&) = delete;
  ~unit_of_work();  // undoes what was not committed

  void commit();

 private:
  connection* database_;  // null once committed
};

}  // namespace rondo::durable::detail::sqlite
