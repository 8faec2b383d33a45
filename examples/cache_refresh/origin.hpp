// The origin, which has the true values: an SQLite database with one row per field of the package catalogue.
//
//   item(id, key, value, version, ttl_ms)
//
// A trigger increments `version` whenever a value changes. So a key and a version identify one text, and an edit by
// hand in the sqlite3 shell reaches the cache like any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "common/sqlite.hpp"

namespace cache_refresh {

// A row as the cache holds it. The origin says how long it may be used.
struct record {
  std::string value;
  std::int64_t version;
  std::chrono::milliseconds ttl;
};

// Where a row is and what it was when the program started.
struct row {
  std::int64_t id;
  std::int64_t version;
};

// Makes the database on the first run: filled from `catalogue`, each row with a random time to live. Returns whether it
// did. Refuses a database of another program, and leaves it unchanged.
bool prepare_origin(const std::filesystem::path& database, const std::filesystem::path& catalogue,
                    std::uint64_t seed);

// A connection for reading. Not thread-safe: each thread has its own.
class origin_reader {
 public:
  explicit origin_reader(const std::filesystem::path& database);

  // The first `limit` rows by id; 0 for all.
  std::vector<row> list(std::size_t limit);

  // Throws sqlite::error if the row cannot be read now.
  record load(std::int64_t id);

 private:
  sqlite::connection database_;
  sqlite::statement list_;
  sqlite::statement load_;
};

// The one connection that writes.
class origin_writer {
 public:
  explicit origin_writer(const std::filesystem::path& database);

  // A change that is visible once it is committed. Destroyed uncommitted, it is undone.
  class edit {
   public:
    std::int64_t version() const noexcept { return version_; }
    void commit() { transaction_.commit(); }

   private:
    friend class origin_writer;
    edit(origin_writer& origin, std::int64_t id, const std::string& mark);

    sqlite::transaction transaction_;
    std::int64_t version_;
  };

  // Puts `mark` at the end of the row's value, in place of an earlier mark.
  edit mark(std::int64_t id, const std::string& mark) { return edit(*this, id, mark); }

 private:
  sqlite::connection database_;
  sqlite::statement value_;
  sqlite::statement change_;
  sqlite::statement version_;
};

}  // namespace cache_refresh
