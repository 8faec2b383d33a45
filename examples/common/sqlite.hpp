// Owners for what the examples use of the SQLite C interface.
//
// A connection belongs to one thread. Destroy a `rows` soon, and before you use its statement again: until then the
// connection reads the database as it was when the query began.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sqlite {

struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class connection {
 public:
  enum class access { read_write, read_only };

  // Opens the database. With write access, creates an empty one if there is none. A call that finds it locked retries
  // for `patience`.
  connection(const std::filesystem::path& file, std::chrono::milliseconds patience,
             access how = access::read_write);

  void execute(const char* sql);

  sqlite3* handle() const noexcept { return handle_.get(); }
  [[noreturn]] void fail() const;

 private:
  struct closer {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, closer> handle_;
};

// The result of one query, row by row.
class rows {
 public:
  explicit rows(sqlite3_stmt* statement) noexcept : statement_(statement) {}
  rows(const rows&) = delete;
  rows& operator=(const rows&) = delete;
  ~rows() { sqlite3_reset(statement_); }

  bool next();
  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;
  bool null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int columns() const noexcept { return sqlite3_column_count(statement_); }

 private:
  sqlite3_stmt* statement_;
};

// Compiled once, run often: statement(1, "two") binds the parameters and returns the rows.
class statement {
 public:
  statement(const connection& database, const char* sql);

  template <class... Parameter>
  rows operator()(const Parameter&... parameters) {
    [[maybe_unused]] int place = 0;  // unused if there are no parameters
    (bind(++place, parameters), ...);
    return rows(handle_.get());
  }

  // As operator(), but takes the parameters as a list.
  rows with(const std::vector<std::string>& parameters) {
    int place = 0;
    for (const std::string& each : parameters) bind(++place, each);
    return rows(handle_.get());
  }

  int columns() const noexcept { return sqlite3_column_count(handle_.get()); }
  int parameters() const noexcept { return sqlite3_bind_parameter_count(handle_.get()); }

 private:
  void bind(int place, std::int64_t value);
  void bind(int place, const std::string& value);
  void check(int result) const;

  struct finalizer {
    void operator()(sqlite3_stmt* handle) const noexcept { sqlite3_finalize(handle); }
  };
  std::unique_ptr<sqlite3_stmt, finalizer> handle_;
};

// Takes the write lock at once. Rolls back unless committed.
class transaction {
 public:
  explicit transaction(connection& database) : database_(&database) { database.execute("BEGIN IMMEDIATE"); }
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;
  ~transaction();

  void commit();

 private:
  connection* database_;  // null once committed
};

}  // namespace sqlite
