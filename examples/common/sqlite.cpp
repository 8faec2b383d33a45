#include "sqlite.hpp"

namespace sqlite {

connection::connection(const std::filesystem::path& file, std::chrono::milliseconds patience, access how) {
  sqlite3* opened = nullptr;
  const int flags =
      how == access::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int result = sqlite3_open_v2(file.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(opened);
  if (result != SQLITE_OK) fail();
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(patience.count()));
}

void connection::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void connection::fail() const { throw error(sqlite3_errmsg(handle_.get())); }

bool rows::next() {
  const int result = sqlite3_step(statement_);
  if (result != SQLITE_ROW && result != SQLITE_DONE) {
    throw error(sqlite3_errmsg(sqlite3_db_handle(statement_)));
  }
  return result == SQLITE_ROW;
}

std::string rows::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

statement::statement(const connection& database, const char* sql) {
  sqlite3_stmt* compiled = nullptr;
  const int result =
      sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &compiled, nullptr);
  handle_.reset(compiled);
  if (result != SQLITE_OK) database.fail();
}

void statement::bind(int place, std::int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), place, value));
}

void statement::bind(int place, const std::string& value) {
  // SQLite copies the text: the caller's string may be destroyed before the statement.
  check(sqlite3_bind_text(handle_.get(), place, value.data(), static_cast<int>(value.size()),
                          SQLITE_TRANSIENT));
}

void statement::check(int result) const {
  if (result != SQLITE_OK) throw error(sqlite3_errmsg(sqlite3_db_handle(handle_.get())));
}

transaction::~transaction() {
  if (database_ != nullptr) sqlite3_exec(database_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void transaction::commit() {
  database_->execute("COMMIT");
  database_ = nullptr;
}

}  // namespace sqlite
