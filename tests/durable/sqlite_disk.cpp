// What reaches the disk, and when.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "durable/sqlite_database.hpp"
#include "threads/patience.hpp"

namespace {

/// Called with the name of each file that this thread is about to sync.
thread_local std::function<void(const std::string&)> before_sync;

}  // namespace

// Replaces the C library's function in the entire program.
extern "C" int fdatasync(int file) {
  if (before_sync) {
    const std::filesystem::path link = "/proc/self/fd/" + std::to_string(file);
    before_sync(std::filesystem::read_symlink(link).string());
  }
  return static_cast<int>(syscall(SYS_fdatasync, file));
}

namespace durable_sqlite_disk {

using namespace durable_test;

/// During its lifetime, notes what this thread syncs, and whether another connection could write at that time.
class syncs {
 public:
  explicit syncs(const sqlite_database& db) {
    sqlite3_open(db.file().c_str(), &other_);
    before_sync = [this](const std::string& file) {
      names_.push_back(std::filesystem::path(file).filename().string());
      is_free_ &= sqlite3_exec(other_, "BEGIN IMMEDIATE; ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK;
    };
  }
  ~syncs() {
    before_sync = nullptr;
    sqlite3_close(other_);
  }
  syncs(const syncs&) = delete;
  syncs& operator=(const syncs&) = delete;

  /// The files of the syncs since the last call.
  std::vector<std::string> names() { return std::exchange(names_, {}); }
  bool others_could_write() const { return is_free_; }

 private:
  sqlite3* other_ = nullptr;
  std::vector<std::string> names_;
  bool is_free_ = true;
};

TEST_CASE(
    "each change of a store is on the disk when it returns, and while it waits for that, others write") {
  sqlite_database db;
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), {});
  const auto mine = rondo::durable::detail::store_access::make(engine);
  const std::vector<std::string> log{"tasks.db-wal"};
  const std::int64_t id = mine->submit_after(1h, {});  // begins the log, which is a sync of its own
  syncs seen(db);
  mine->submit_after(1h, {.key = "k"});
  CHECK(seen.names() == log);
  mine->submit_all(std::vector<rondo::durable::planned>(3));
  CHECK(seen.names() == log);
  mine->reschedule_after(id, 2h);
  CHECK(seen.names() == log);
  mine->cancel(id);
  CHECK(seen.names() == log);
  mine->cancel("default", "k");
  CHECK(seen.names() == log);
  mine->repeat({.queue = "q", .key = "k", .when = rondo::durable::schedule::every(1h)});
  CHECK(seen.names() == log);
  mine->pause("q");
  CHECK(seen.names() == log);
  mine->resume("q");
  CHECK(seen.names() == log);
  CHECK(seen.others_could_write());

  mine->find(id);
  CHECK(seen.names().empty());
}

TEST_CASE("the turn of a session waits for no disk") {
  sqlite_database db;
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), {});
  const auto mine = rondo::durable::detail::store_access::make(engine);
  const auto session = engine->connect("w", worker::default_rules());
  for (int i = 0; i != 3; ++i) mine->submit_after(0s, {});
  syncs seen(db);
  std::vector<ticket> claimed;
  for (const auto& c : session->take({.claim_up_to = 9}).claimed) claimed.push_back(ticket_of(c));
  CHECK(session->take({.begun = claimed}).begun.size() == 3);
  CHECK(session->take({.finished = claimed}).finished.size() == 3);
  CHECK(seen.names().empty());
}

/// How often the log has begun anew since it was made.
unsigned beginnings(const sqlite_database& db) {
  std::ifstream log(db.file() + "-wal", std::ios::binary);
  char header[16]{};
  log.read(header, sizeof header);
  unsigned number = 0;
  for (int i = 12; i != 16; ++i) number = number << 8 | static_cast<unsigned char>(header[i]);
  return number;
}

TEST_CASE(
    "the log of a store that is never idle begins anew, and no commit waits for the copy of a long one") {
  sqlite_database db;
  const auto mine = db.open_store();
  const std::string page(4096, 'p');
  mine->submit_after(1h, {.payload = page});
  const unsigned before = beginnings(db);
  syncs seen(db);
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (beginnings(db) == before && std::chrono::steady_clock::now() < end)
    mine->submit_all(
        std::vector<rondo::durable::planned>(50, {.what = {.payload = page}, .when = std::chrono::hours(1)}));
  CHECK(beginnings(db) != before);
  CHECK(std::filesystem::file_size(db.file() + "-wal") > 2'000 * page.size());
  CHECK(seen.names().empty());
}

}  // namespace durable_sqlite_disk
