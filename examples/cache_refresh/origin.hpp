// The origin: where the truth is. An SQLite database with one row per field of the package catalogue.
//
//   item(id, key, value, version, ttl_ms)
//
// A trigger counts `version` up whenever a value changes, whoever changes it: so a key and a version name one
// text, and an edit made by hand in the sqlite3 shell reaches the cache like any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "sqlite.hpp"

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

// Makes sure that there is a database to read from and write to: on the first run it is filled from
// `catalogue`, every row with a random time to live. Says whether it did. A database of somebody else's is
// refused untouched.
bool prepare_origin(const std::filesystem::path& database, const std::filesystem::path& catalogue,
                    std::uint64_t seed);

// A connection for reading. Not thread-safe: each thread has its own.
class origin_reader {
 public:
  explicit origin_reader(const std::filesystem::path& database);

  // The first `limit` rows by id; 0 for all.
  std::vector<row> list(std::size_t limit);

  // Throws sqlite::error if the row cannot be had now.
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

  // A change that nobody sees until it is committed; dropped, it has not been.
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

  // Puts `mark` at the end of the row's value, instead of the mark that it may have from earlier.
  edit mark(std::int64_t id, const std::string& mark) { return edit(*this, id, mark); }

 private:
  sqlite::connection database_;
  sqlite::statement value_;
  sqlite::statement change_;
  sqlite::statement version_;
};

}  // namespace cache_refresh
