#include "origin.hpp"

#include <limits>
#include <random>

namespace cache_refresh {
namespace {

constexpr std::chrono::milliseconds shortest_ttl{1000};
constexpr std::chrono::milliseconds longest_ttl{8000};

// Only the writer and the first run wait for a lock; a loader that meets one fails, and is retried.
constexpr std::chrono::milliseconds writer_patience{1000};
constexpr std::chrono::milliseconds reader_patience{20};

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

constexpr const char* mark_opens = " [edit ";

std::int64_t ask(const sqlite::connection& database, const char* sql) {
  sqlite::statement query(database, sql);
  sqlite::rows answer = query();
  return answer.next() ? answer.integer(0) : 0;
}

void fill(sqlite::connection& database, const std::vector<field>& catalogue, std::uint64_t seed) {
  database.execute(schema);
  // If a key comes twice, as in a catalogue of several versions of a package, the first one counts.
  sqlite::statement insert(database, "INSERT OR IGNORE INTO item (key, value, ttl_ms) VALUES (?, ?, ?)");
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> ttl(shortest_ttl.count(), longest_ttl.count());
  for (const field& each : catalogue) insert(each.key, each.value, ttl(random)).next();
}

// The same text without the mark of an earlier edit.
std::string unmarked(std::string text) {
  const std::size_t mark = text.ends_with(']') ? text.rfind(mark_opens) : std::string::npos;
  return mark == std::string::npos ? text : text.substr(0, mark);
}

}  // namespace

bool prepare_origin(const std::filesystem::path& file, const std::filesystem::path& catalogue,
                    std::uint64_t seed) {
  sqlite::connection database(file, writer_patience);
  // Taking the write lock fails if the file cannot be written, and keeps another first run from starting.
  sqlite::transaction change(database);
  const bool empty = ask(database, "SELECT count(*) FROM sqlite_master") == 0;
  if (empty) {
    fill(database, read_catalogue(catalogue), seed);
    change.commit();
  } else if (ask(database, "PRAGMA application_id") != our_application_id) {
    throw sqlite::error("is a database of something else");
  } else {
    change.commit();
  }
  // With a write-ahead log, readers and the writer do not wait for each other.
  database.execute("PRAGMA journal_mode = WAL");
  return empty;
}

origin_reader::origin_reader(const std::filesystem::path& database)
    : database_(database, reader_patience),
      list_(database_, "SELECT id, version FROM item ORDER BY id LIMIT ?"),
      load_(database_, "SELECT value, version, ttl_ms FROM item WHERE id = ?") {}

std::vector<row> origin_reader::list(std::size_t limit) {
  const auto most = limit == 0 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(limit);
  std::vector<row> all;
  for (sqlite::rows answer = list_(most); answer.next();)
    all.push_back({answer.integer(0), answer.integer(1)});
  return all;
}

record origin_reader::load(std::int64_t id) {
  sqlite::rows answer = load_(id);
  if (!answer.next()) throw sqlite::error("the row is gone");
  return {answer.text(0), answer.integer(1), std::chrono::milliseconds(answer.integer(2))};
}

origin_writer::origin_writer(const std::filesystem::path& database)
    : database_(database, writer_patience),
      value_(database_, "SELECT value FROM item WHERE id = ?"),
      change_(database_, "UPDATE item SET value = ? WHERE id = ?"),
      version_(database_, "SELECT version FROM item WHERE id = ?") {
  // Safe with a write-ahead log against a crash of the program; a power cut may lose the last edits.
  database_.execute("PRAGMA synchronous = NORMAL");
}

origin_writer::edit::edit(origin_writer& origin, std::int64_t id, const std::string& mark)
    : transaction_(origin.database_) {
  std::string text;
  {
    sqlite::rows answer = origin.value_(id);
    if (!answer.next()) throw sqlite::error("the row is gone");
    text = unmarked(answer.text(0));
  }
  origin.change_(text + mark_opens + mark + "]", id).next();
  sqlite::rows answer = origin.version_(id);
  answer.next();
  version_ = answer.integer(0);
}

}  // namespace cache_refresh
