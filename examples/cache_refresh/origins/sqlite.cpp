// The values are rows of an SQLite database.
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "common/sqlite.hpp"
#include "parts.hpp"

namespace cache_refresh {
namespace {

using access = sqlite::connection::access;
using std::chrono::milliseconds;

// A load that finds the database locked fails soon, and is retried. Writing and opening wait longer.
constexpr milliseconds writer_patience{1000};
constexpr milliseconds reader_patience{20};

// "application_id", in the header of a database file, says which program owns it.
constexpr std::int64_t our_application_id = 0x526f4352;
constexpr const char* schema =
    "PRAGMA application_id = 0x526f4352;"
    "CREATE TABLE item ("
    "  id INTEGER PRIMARY KEY,"
    "  key TEXT NOT NULL UNIQUE,"
    "  value TEXT NOT NULL,"
    "  version INTEGER NOT NULL DEFAULT 1,"
    "  ttl_ms INTEGER NOT NULL);"
    "CREATE TRIGGER item_changed AFTER UPDATE OF value ON item BEGIN"
    "  UPDATE item SET version = version + 1 WHERE id = new.id; "
    "END";

struct database {
  std::filesystem::path file;
  access how;
  std::string list;
  std::string load;
};

std::int64_t ask(const sqlite::connection& opened, const char* sql) {
  sqlite::statement query(opened, sql);
  sqlite::rows found = query();
  return found.next() ? found.integer(0) : 0;
}

void fill(sqlite::connection& opened, const origin_options& wanted) {
  opened.execute(schema);
  sqlite::statement insert(opened, "INSERT INTO item (key, value, ttl_ms) VALUES (?, ?, ?)");
  make_rows(wanted, [&](const new_row& row) { insert(row.key, row.value, row.ttl_ms).next(); });
}

// Creates the database unless it exists.
void prepare(const std::filesystem::path& file, const origin_options& wanted) {
  sqlite::connection opened(file, writer_patience);
  // Taking the write lock fails if the file cannot be written, and keeps out another first run.
  sqlite::transaction change(opened);
  if (ask(opened, "SELECT count(*) FROM sqlite_master") == 0) {
    fill(opened, wanted);
  } else if (ask(opened, "PRAGMA application_id") != our_application_id) {
    throw origin_error("is a database of another program: to use it, give --list and --load");
  }
  change.commit();
  // With a write-ahead log, readers and the writer do not wait for each other.
  opened.execute("PRAGMA journal_mode = WAL");
}

class sqlite_connection : public origin_connection {
 public:
  explicit sqlite_connection(const database& which) : which_(which) {}

  answer load(const std::string& key, const record* held, rondo::duration limit) override {
    try {
      if (!open_) open_.emplace(which_);
      sqlite3_busy_timeout(open_->handle.handle(),
                           static_cast<int>(std::min(reader_patience, whole_milliseconds(limit)).count()));
      open_->until = rondo::time_point::clock::now() + whole_milliseconds(limit);
      return read(key, held);
    } catch (const sqlite::error& bad) {
      const bool late = open_ && rondo::time_point::clock::now() >= open_->until;
      open_.reset();
      throw origin_error(late ? "no answer within the limit" : bad.what());
    }
  }

 private:
  // Must not move: its address is the argument of the handler.
  struct opened {
    explicit opened(const database& which)
        : handle(which.file, reader_patience, which.how), load(handle, which.load.c_str()) {
      // A query of the user's own may take long. SQLite calls this after every 10,000 steps, to ask whether to end it.
      sqlite3_progress_handler(
          handle.handle(), 10'000,
          [](void* self) {
            return rondo::time_point::clock::now() >= static_cast<opened*>(self)->until ? 1 : 0;
          },
          this);
    }

    sqlite::connection handle;
    sqlite::statement load;
    rondo::time_point until = rondo::time_point::max();
  };

  answer read(const std::string& key, const record* held) {
    sqlite::rows found = open_->load(key);
    if (!found.next()) throw origin_error(fmt::format("{}: there is no such row", key));
    answer given;
    if (found.columns() > 2 && !found.null(2)) given.ttl = ttl_of(found.integer(2));
    std::string validator = found.text(1);
    // SQLite reads a long value from the file only when it is asked for.
    if (held == nullptr || validator.empty() || held->validator != validator)
      given.changed = record{found.text(0), std::move(validator)};
    return given;
  }

  const database which_;
  std::optional<opened> open_;
};

class sqlite_editor : public origin_editor {
 public:
  explicit sqlite_editor(const database& which) : which_(which) {}

  std::string change(const std::string& key, const std::string& mark,
                     const std::function<void()>& before) override {
    try {
      if (!open_) open_.emplace(which_);
      sqlite::transaction change(open_->handle);
      open_->update(marked(open_->value_of(key), mark), key).next();
      std::string version = open_->version_of(key);
      before();
      change.commit();
      return version;
    } catch (const sqlite::error& bad) {
      open_.reset();
      throw origin_error(bad.what());
    }
  }

 private:
  struct opened {
    explicit opened(const database& which)
        : handle(which.file, writer_patience),
          value(handle, "SELECT value FROM item WHERE key = ?"),
          update(handle, "UPDATE item SET value = ? WHERE key = ?"),
          version(handle, "SELECT version FROM item WHERE key = ?") {
      // With a write-ahead log this survives a crash of the program, but a power cut may lose the last edits.
      handle.execute("PRAGMA synchronous = NORMAL");
    }

    std::string value_of(const std::string& key) {
      sqlite::rows found = value(key);
      if (!found.next()) throw origin_error(fmt::format("{}: there is no such row", key));
      return found.text(0);
    }
    std::string version_of(const std::string& key) {
      sqlite::rows found = version(key);
      found.next();
      return found.text(0);
    }

    sqlite::connection handle;
    sqlite::statement value;
    sqlite::statement update;
    sqlite::statement version;
  };

  const database which_;
  std::optional<opened> open_;
};

// Reports what would otherwise be reported at the first load.
void check_queries(const database& which) {
  sqlite::connection opened(which.file, writer_patience, which.how);
  sqlite::statement list(opened, which.list.c_str());
  sqlite::statement load(opened, which.load.c_str());
  if (list.columns() < 1 || list.parameters() != 0)
    throw origin_error("the query that lists keys must return a column and have no parameter");
  if (load.columns() < 2 || load.columns() > 3 || load.parameters() != 1)
    throw origin_error(
        "the query that loads must have one parameter, and return value, validator and optionally "
        "milliseconds");
}

class sqlite_origin : public origin {
 public:
  explicit sqlite_origin(database which) : which_(std::move(which)) {}

  std::string name() const override { return which_.file.string() + ", an SQLite database"; }

  std::vector<std::string> keys(std::size_t most) override {
    if (most == 0) most = std::numeric_limits<std::size_t>::max();
    std::vector<std::string> all;
    try {
      sqlite::connection opened(which_.file, writer_patience, which_.how);
      sqlite::statement list(opened, which_.list.c_str());
      for (sqlite::rows found = list(); all.size() < most && found.next();) all.push_back(found.text(0));
    } catch (const sqlite::error& bad) {
      throw origin_error(bad.what());
    }
    return all;
  }

  std::unique_ptr<origin_connection> connect() override {
    return std::make_unique<sqlite_connection>(which_);
  }
  std::unique_ptr<origin_editor> edit() override {
    if (which_.how == access::read_only) return nullptr;
    return std::make_unique<sqlite_editor>(which_);
  }

 private:
  const database which_;
};

}  // namespace

std::unique_ptr<origin> open_sqlite_origin(const origin_options& wanted) {
  const std::filesystem::path file = wanted.url.substr(wanted.url.find(':') + 1);
  // For SQLite these names mean a separate database for each connection.
  if (file.empty() || file == ":memory:") throw origin_error("sqlite: needs a file name");
  database which{file, access::read_only, wanted.list_query, wanted.load_query};
  try {
    if (wanted.load_query.empty()) {
      prepare(file, wanted);
      which = {file, access::read_write, "SELECT key FROM item ORDER BY id",
               "SELECT value, version, ttl_ms FROM item WHERE key = ?"};
    }
    check_queries(which);
  } catch (const sqlite::error& bad) {
    throw origin_error(bad.what());
  }
  return std::make_unique<sqlite_origin>(std::move(which));
}

}  // namespace cache_refresh
