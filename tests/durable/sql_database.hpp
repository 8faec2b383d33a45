// Databases whose tables a test can also reach by SQL, and in whose transactions a store's calls can take part: SQLite's
// and PostgreSQL's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/database.hpp"

namespace durable_test {

/// The user's own connection.
class their_connection {
 public:
  virtual ~their_connection() = default;
  virtual rondo::durable::transaction handle() = 0;
  virtual void execute(const std::string& sql) = 0;  // throws if the database refuses it
};

class sql_database : public database {
 public:
  virtual std::string url() const = 0;
  virtual std::unique_ptr<their_connection> connect() = 0;
  /// The first column of the first row, as text. Empty for NULL, or if there is no row.
  virtual std::string ask(const std::string& sql) = 0;
  /// To be called before each call of the engine if the test has given the clock: the engine's clock then shows what
  /// that shows now. From any thread.
  virtual void tell_time() {}

  std::vector<row> rows() final;
  std::vector<std::string> owners() final;
  std::string wrong() final;

 protected:
  /// How an expression and the rows of a query are written as text.
  struct dialect {
    std::string bytes_begin, bytes_end;  // in hexadecimal digits
    std::string text_begin, text_end;
    std::string time_begin, time_end;  // in microseconds
    std::string list;                  // an aggregate of texts
    std::string line_feed;
  };
  virtual dialect speaks() const = 0;
};

std::unique_ptr<sql_database> new_sql_database();
/// The engine's clock is the test's, so there is no need for pass() and now().
std::unique_ptr<sql_database> new_sql_database(std::function<rondo::durable::wall_time()> clock);

}  // namespace durable_test
