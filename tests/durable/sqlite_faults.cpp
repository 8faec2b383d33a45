// What the disk, other users and the limits of a process do to SQLite's files, and what the errors say.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durable/child.hpp"
#include "durable/errors.hpp"
#include "durable/sqlite_database.hpp"
#include "threads/patience.hpp"

// What reaches the disk, and when.

namespace {

/// Called with the name of each file that this thread is about to sync.
thread_local std::function<void(const std::string&)> before_sync;

}  // namespace

namespace {

/// What a power cut would leave of a database and its log. The system tells one sync only that the disk has failed to write
/// some pages. From then on it takes them for written, unless they are written again.
class disk_of_log {
 public:
  /// The log has begun. There is one such object at a time.
  explicit disk_of_log(const std::string& database) : database_(database) {
    struct stat found {};
    stat((database + "-wal").c_str(), &found);
    log_ = found.st_ino;
    there_ = seen_ = current();
    used_ = this;
  }
  ~disk_of_log() { used_ = nullptr; }
  disk_of_log(const disk_of_log&) = delete;
  disk_of_log& operator=(const disk_of_log&) = delete;

  /// Another of the next syncs fails. Then `then` is called before the failure is told.
  void fail_next(std::function<void()> then = [] {}) {
    const std::lock_guard hold(mutex_);
    failures_.push_back(std::move(then));
  }
  /// Another of the next syncs does not fail.
  void let_next() {
    const std::lock_guard hold(mutex_);
    failures_.emplace_back();
  }
  /// The next sync does not fail.
  void forgive() {
    const std::lock_guard hold(mutex_);
    failures_.clear();
  }
  /// How often it was synced, or failed to be.
  int syncs() const { return syncs_; }
  /// Whether the log has become longer since the last sync.
  bool is_longer() {
    const std::lock_guard hold(mutex_);
    return current().size() > seen_.size();
  }
  std::string after_power_cut(const std::string& sql) {
    const durable_test::temporary_folder folder;
    const std::string copy = (folder.path() / "tasks.db").string();
    std::filesystem::copy_file(database_, copy);
    std::ofstream(copy + "-wal", std::ios::binary) << there_;
    sqlite3* opened = nullptr;
    sqlite3_open(copy.c_str(), &opened);
    std::string result = "nothing";
    sqlite3_exec(
        opened, sql.c_str(),
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0];
          return 0;
        },
        &result, nullptr);
    sqlite3_close(opened);
    return result;
  }

  static void written(int file, off_t at, std::size_t size) {
    if (disk_of_log* d = used_; d != nullptr && d->is_log(file)) {
      const std::lock_guard hold(d->mutex_);
      d->waiting_.emplace_back(static_cast<std::size_t>(at), size);
    }
  }
  /// Returns whether the sync fails.
  static bool fails(int file) {
    disk_of_log* d = used_;
    return d != nullptr && d->is_log(file) && d->fails_now();
  }

 private:
  bool is_log(int file) const {
    struct stat found {};
    return fstat(file, &found) == 0 && found.st_ino == log_;
  }
  std::string current() const {
    std::ifstream in(database_ + "-wal", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool fails_now() {
    ++syncs_;
    std::function<void()> then;
    {
      const std::lock_guard hold(mutex_);
      std::string before = std::exchange(seen_, current());
      auto all = std::exchange(waiting_, {});
      if (!failures_.empty()) {
        then = failures_.front();
        failures_.erase(failures_.begin());
      }
      if (!then) {
        // SQLite may have another way to write, but writes nothing twice.
        before.resize(seen_.size());
        for (std::size_t i = 0; i != seen_.size(); ++i)
          if (seen_[i] != before[i]) all.emplace_back(i, 1);
        there_.resize(std::max(there_.size(), seen_.size()));
        for (const auto& [at, size] : all) there_.replace(at, size, seen_, at, size);
        return false;
      }
    }
    then();
    return true;
  }

  static inline std::atomic<disk_of_log*> used_ = nullptr;

  const std::string database_;
  ino_t log_ = 0;
  std::atomic<int> syncs_ = 0;
  std::mutex mutex_;
  std::string there_, seen_;  // the log; as it was at the last sync
  std::vector<std::pair<std::size_t, std::size_t>> waiting_;
  std::vector<std::function<void()>> failures_;
};

}  // namespace

// These replace the C library's functions in the entire program.
extern "C" ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  const iovec all{const_cast<void*>(bytes), size};
  const ssize_t done = pwritev(file, &all, 1, at);
  if (done > 0) disk_of_log::written(file, at, static_cast<std::size_t>(done));
  return done;
}
extern "C" int fdatasync(int file) {
  if (disk_of_log::fails(file)) {
    errno = EIO;
    return -1;
  }
  if (before_sync) {
    const std::filesystem::path link = "/proc/self/fd/" + std::to_string(file);
    before_sync(std::filesystem::read_symlink(link).string());
  }
  return static_cast<int>(syscall(SYS_fdatasync, file));
}

namespace durable_sqlite_faults {

using namespace durable_test;
using rondo::durable::store_error;
using rondo::durable::detail::store_access;

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

TEST_CASE(
    "what a store says is on the disk is there, although the disk has failed to write what came before") {
  for (const bool at_once : {false, true}) {
    CAPTURE(at_once);
    sqlite_database db;
    const auto mine = store_access::make(rondo::durable::detail::sqlite::open(db.file(), {}));
    mine->submit_after(1h, {});
    disk_of_log disk(db.file());
    std::thread other;
    std::atomic<int> accepted = 0;
    disk.fail_next([&] {
      if (!at_once) return;
      other = std::thread([&] { accepted += static_cast<int>(mine->submit_after(1h, {}) != 0); });
      while (!disk.is_longer()) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(20ms);  // it syncs
    });
    accepted += error_of([&] { mine->submit_after(1h, {}); }) == "" ? 1 : 0;
    if (other.joinable()) other.join();
    accepted += error_of([&] { mine->submit_after(1h, {}); }) == "" ? 1 : 0;
    CHECK(disk.after_power_cut("SELECT count(*) FROM rondo_task") == std::to_string(1 + accepted));
    CHECK(accepted >= 2);
  }
}

TEST_CASE("as long as the disk does not write, changes of a store fail, and are perhaps done") {
  sqlite_database db;
  const auto mine = store_access::make(rondo::durable::detail::sqlite::open(db.file(), {}));
  mine->submit_after(1h, {});
  disk_of_log disk(db.file());
  for (int i = 0; i != 3; ++i) {
    for (int n = 0; n != 2; ++n) disk.fail_next();
    try {
      mine->submit_after(1h, {});
      FAIL("accepted");
    } catch (const store_error& e) {
      CHECK(e.perhaps_done());
      CHECK(std::string(e.what()) == "rondo: SQLite, " + db.file() + "-wal: Input/output error");
    }
    disk.forgive();
  }
  mine->submit_after(1h, {});
  CHECK(disk.after_power_cut("SELECT count(*) FROM rondo_task") == "5");
}

TEST_CASE(
    "a power cut damages nothing, although a checkpoint could not put the log on the disk before another "
    "one") {
  for (const bool is_sqlites_sync : {false, true}) {  // or the one before that
    CAPTURE(is_sqlites_sync);
    sqlite_database db;
    const auto mine = db.open_store();  // its calls do not sync, as those of sessions
    mine->submit_after(1h, {});
    disk_of_log disk(db.file());
    if (is_sqlites_sync) disk.let_next();
    disk.fail_next();
    constexpr std::size_t some = 1'200;
    const std::vector<rondo::durable::planned> list(
        some, {.what = {.payload = std::string(4096, 'p')}, .when = 1h});
    const auto wait_for = [](const auto& holds) {
      const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
      while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
      CHECK(holds());
    };
    mine->submit_all(list);
    wait_for([&] { return disk.syncs() >= 2; });
    mine->submit_all(list);
    wait_for([&] { return disk.syncs() >= 3 && std::filesystem::file_size(db.file()) > 2 * some * 4000; });
    CHECK(disk.after_power_cut("PRAGMA integrity_check") == "ok");
    CHECK(disk.after_power_cut("SELECT count(*) FROM rondo_task") == std::to_string(1 + 2 * some));
  }
}

TEST_CASE(
    "a power cut damages nothing, although a store could not put the log on the disk before a checkpoint") {
  sqlite_database db;
  const auto engine = rondo::durable::detail::sqlite::open(db.file(), {});
  const auto mine = store_access::make(engine);
  const auto session = engine->connect("w", worker::default_rules());
  db.ask("PRAGMA wal_checkpoint(TRUNCATE)");
  mine->submit_after(0s, {});
  disk_of_log disk(db.file());
  for (int n = 0; n != 2; ++n) disk.fail_next();
  CHECK_THROWS_AS(mine->submit_after(0s, {}), store_error);
  constexpr std::size_t some = 450;
  const std::vector<rondo::durable::planned> list(some,
                                                  {.what = {.payload = std::string(4096, 'p')}, .when = 1h});
  const auto theirs = db.connect();
  theirs->execute("PRAGMA wal_autocheckpoint = 0; BEGIN");
  mine->submit_all(theirs->handle(), list);
  theirs->execute("COMMIT");
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (std::filesystem::file_size(db.file()) < some * 4000 && std::chrono::steady_clock::now() < end) {
    std::vector<ticket> claimed;  // without a sync
    for (const auto& c : session->take({.claim_up_to = 9}).claimed) claimed.push_back(ticket_of(c));
    session->take({.returned = claimed});
  }
  CHECK(std::filesystem::file_size(db.file()) > some * 4000);
  CHECK(disk.after_power_cut("PRAGMA integrity_check") == "ok");
  CHECK(disk.after_power_cut("SELECT count(*) FROM rondo_task") == std::to_string(2 + some));
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

// A full disk, a lock held by somebody else, a broken file: the errors, and that everything works again afterwards.

/// A store and a session, and their SQLite connections.
struct in_use {
  sqlite_database db;
  std::vector<sqlite3*> connections;
  bool memory_is_short = false;
  std::shared_ptr<rondo::durable::detail::engine> engine;
  std::unique_ptr<rondo::durable::store> store;
  std::unique_ptr<rondo::durable::detail::session> session;

  in_use() {
    auto settings = db.settings();
    settings.patience = 20ms;
    settings.connected = [this](sqlite3* made) {
      if (memory_is_short) throw std::bad_alloc();
      connections.push_back(made);
    };
    engine = rondo::durable::detail::sqlite::open(db.file(), settings);
    store = rondo::durable::detail::store_access::make(engine);
    session = engine->connect("w", worker::default_rules());
  }
  std::string rows() { return db.ask("SELECT count(*) FROM rondo_task"); }
};

void pragma(sqlite3* connection, const std::string& what) {
  REQUIRE(sqlite3_exec(connection, ("PRAGMA " + what).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
}

TEST_CASE(
    "on a full disk submissions throw and nothing is lost; when there is room again, the store works again") {
  in_use x;
  pragma(x.connections[0], "max_page_count = 60");
  std::vector<std::int64_t> accepted;
  std::string said;
  for (int i = 0; i < 1000 && said.empty(); ++i) {
    said =
        error_of([&] { accepted.push_back(x.store->submit_after(1h, {.payload = std::string(1000, 'p')})); });
  }
  CHECK(said == "rondo: SQLite, " + x.db.file() +
                    ": database or disk is full (nothing was changed; free some disk space and try again)");
  CHECK(accepted.size() > 10);
  CHECK(x.rows() == std::to_string(accepted.size()));
  for (const std::int64_t id : accepted) CHECK(x.store->find(id)->payload.size() == 1000);
  CHECK(error_of([&] { x.store->submit_after(1h, {.payload = std::string(1000, 'p')}); }) == said);

  pragma(x.connections[0], "max_page_count = 1000");
  CHECK(x.store->submit_after(1h, {.payload = std::string(1000, 'p')}) > accepted.back());
  CHECK(x.rows() == std::to_string(accepted.size() + 1));
}

TEST_CASE("a replacement on a full disk leaves the old task") {
  in_use x;
  const std::int64_t old = x.store->submit_after(1h, {.payload = "old", .key = "k"});
  pragma(x.connections[0], "max_page_count = 12");
  CHECK(error_of([&] {
          x.store->submit_after(1h, {.payload = std::string(100'000, 'p'), .key = "k", .replace = true});
        }).find("full") != std::string::npos);
  CHECK(x.store->find(old)->payload == "old");
  CHECK(x.store->find(old)->key == "k");
}

TEST_CASE("on a full disk the user's transaction loses only the submission") {
  in_use x;
  const auto mine = x.db.connect();
  mine->execute("CREATE TABLE orders (number INTEGER)");
  mine->execute("PRAGMA max_page_count = 12");
  mine->execute("BEGIN; INSERT INTO orders VALUES (7)");
  const std::int64_t first = x.store->submit_after(mine->handle(), 1h, {});
  CHECK(error_of([&] {
          x.store->submit_after(mine->handle(), 1h, {.payload = std::string(100'000, 'p')});
        }).find("full") != std::string::npos);
  REQUIRE(sqlite3_get_autocommit(mine->handle().sqlite()) == 0);
  mine->execute("COMMIT");
  CHECK(x.store->find(first));
  CHECK(x.rows() == "1");
  CHECK(x.db.ask("SELECT count(*) FROM orders") == "1");
}

TEST_CASE("a turn on a full disk does nothing, and succeeds when there is room again") {
  in_use x;
  for (int i = 0; i < 50; ++i) x.store->submit_after(0s, {.payload = std::string(200, 'p')});
  std::vector<ticket> begun;
  for (const auto& c : x.session->take({.claim_up_to = 50}).claimed) begun.push_back(ticket_of(c));
  CHECK(begun.size() == 50);
  CHECK(x.session->take({.begun = begun}).begun.size() == 50);
  pragma(x.connections[1], "max_page_count = 10");
  turn ends = {.finished = {begun[0]}};
  for (std::size_t i = 1; i < begun.size(); ++i)
    ends.failed.push_back({.of = begun[i], .retry_after = {}, .reason = std::string(4000, 'r')});
  CHECK(error_of([&] { x.session->take(ends); }).find("full") != std::string::npos);
  CHECK(x.rows() == "50");
  CHECK(x.db.ask("SELECT count(*) FROM rondo_task WHERE state = 2") == "50");
  pragma(x.connections[1], "max_page_count = 1000");
  const turn_result done = x.session->take(ends);
  CHECK(done.finished.size() == 1);
  CHECK(done.failed.size() == 49);
  CHECK(x.rows() == "49");
}

TEST_CASE(
    "a lock that another connection holds for too long is an error and nothing is changed; afterwards calls "
    "work again") {
  in_use x;
  const std::int64_t id = x.store->submit_after(0s, {});
  const auto mine = x.db.connect();
  mine->execute("BEGIN IMMEDIATE");
  const auto locked = [](const std::string& said) {
    return said.find("database is locked (") != std::string::npos;
  };
  CHECK(locked(error_of([&] { x.store->submit_after(1h, {}); })));
  CHECK(locked(error_of([&] { x.store->cancel(id); })));
  CHECK(locked(error_of([&] { x.store->reschedule_after(id, 1h); })));
  CHECK(locked(error_of([&] { x.session->take({.claim_up_to = 1}); })));
  CHECK(x.store->find(id));  // needs no lock
  mine->execute("ROLLBACK");
  CHECK(x.rows() == "1");
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
  CHECK(x.store->cancel(id));
  CHECK(x.connections.size() == 2);
}

TEST_CASE(
    "a call in a user's transaction that began to read before another wrote is refused, and the transaction "
    "is not undone") {
  in_use x;
  const auto mine = x.db.connect();
  mine->execute("CREATE TABLE orders (number INTEGER)");
  mine->execute("BEGIN; SELECT count(*) FROM rondo_task");
  x.store->submit_after(1h, {});
  CHECK(error_of([&] {
          x.store->submit_after(mine->handle(), 1h, {});
        }).find("should start with BEGIN IMMEDIATE") != std::string::npos);
  mine->execute("ROLLBACK; BEGIN IMMEDIATE");
  CHECK_NOTHROW(x.store->submit_after(mine->handle(), 1h, {}));
  mine->execute("COMMIT");
  CHECK(x.rows() == "2");
}

TEST_CASE("a turn that cannot look where its file is leaves no transaction open") {
  in_use x;
  x.store->submit_after(0s, {});
  CHECK(x.session->take({}).claimed.empty());
  const std::filesystem::path folder = std::filesystem::path(x.db.file()).parent_path();
  const std::filesystem::path aside = folder.string() + ".aside";
  std::filesystem::rename(folder, aside);
  std::filesystem::create_directory_symlink(folder, folder);
  CHECK(error_of([&] { x.session->take({.claim_up_to = 1}); }).find("symbolic links") != std::string::npos);
  std::filesystem::remove(folder);
  std::filesystem::rename(aside, folder);
  CHECK(x.store->submit_after(0s, {}) == 2);
  CHECK(x.session->take({.claim_up_to = 9}).claimed.size() == 2);
}

/// During its lifetime the file is not a database.
class broken_file {
 public:
  explicit broken_file(sqlite_database& db)
      : file_(db.file(), std::ios::in | std::ios::out | std::ios::binary) {
    db.ask("PRAGMA wal_checkpoint(TRUNCATE)");
    file_.read(header_.data(), 100);
    write(std::string(100, 'x'));
  }
  ~broken_file() { write(header_); }
  broken_file(const broken_file&) = delete;
  broken_file& operator=(const broken_file&) = delete;

 private:
  void write(const std::string& bytes) { file_.seekp(0).write(bytes.data(), 100).flush(); }

  std::fstream file_;
  std::string header_ = std::string(100, '\0');
};

TEST_CASE("the next call reconnects after the connection broke") {
  in_use x;
  const std::int64_t id = x.store->submit_after(0s, {});
  {
    const broken_file f(x.db);
    CHECK(error_of([&] { x.store->find(id); }) != "");
    CHECK(error_of([&] { x.session->take({.claim_up_to = 1}); }) != "");
    CHECK(error_of([&] { x.store->find(id); }) != "");
  }
  CHECK(x.store->find(id));
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
  CHECK(x.connections.size() == 4);
}

TEST_CASE("changed() returns true if there is no memory to connect, and the turn reports the error") {
  in_use x;
  x.store->submit_after(0s, {});
  {
    const broken_file f(x.db);
    CHECK(error_of([&] { x.session->take({.claim_up_to = 1}); }) != "");
  }
  x.memory_is_short = true;
  CHECK(x.session->changed());
  CHECK_THROWS_AS(x.session->take({.claim_up_to = 1}), std::bad_alloc);
  x.memory_is_short = false;
  CHECK(x.session->take({.claim_up_to = 1}).claimed.size() == 1);
}

// What other users, the limits of a process and its file systems allow, and what the errors advise.

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Opens a store, submits a task and claims it.
bool works(sqlite_database& db, const std::string& name) {
  const auto engine = db.open();
  const std::int64_t id = store_access::make(engine)->submit_after(0s, {});
  const auto session = engine->connect(name, worker::default_rules());
  const auto done = session->take({.claim_up_to = 1});
  return done.claimed.size() == 1 && done.claimed[0].what.id == id;
}

/// The message of the exception if a store or a session cannot be opened.
std::string refusal(sqlite_database& db) {
  try {
    db.open()->connect("w", worker::default_rules())->take({.claim_up_to = 1});
    return "";
  } catch (const store_error& e) {
    return e.what();
  }
}

struct stat status(const std::string& file) {
  struct stat s {};
  REQUIRE(stat(file.c_str(), &s) == 0);
  return s;
}

mode_t mode(const std::string& file) { return status(file).st_mode & 07777; }

/// During its lifetime, new files get no more rights than these.
class masked {
 public:
  explicit masked(mode_t mask) : before_(umask(mask)) {}
  ~masked() { umask(before_); }
  masked(const masked&) = delete;
  masked& operator=(const masked&) = delete;

 private:
  mode_t before_;
};

constexpr gid_t group = 60'000;
constexpr uid_t first = 60'001, second = 60'002;

/// In the process of a user who belongs to the group only by its list, as most users do.
template <class Function>
bool as(uid_t user, Function f) {
  return child([&] { return setgroups(1, &group) == 0 && setgid(user) == 0 && setuid(user) == 0 && f(); })
      .succeeded();
}

TEST_CASE("the file of the owners' locks gets the mode of the database, whatever the mask") {
  sqlite_database db;
  db.ask("CREATE TABLE orders (number INTEGER)");
  for (const mode_t wanted : {0660u, 0600u, 0666u, 0640u}) {
    CAPTURE(wanted);
    chmod(db.file().c_str(), wanted);
    std::filesystem::remove(db.file() + "-owners");
    const masked by(wanted == 0640 ? 0 : 077);
    CHECK(works(db, std::to_string(wanted)));
    CHECK(mode(db.file() + "-owners") == wanted);
  }
  chmod((db.file() + "-owners").c_str(), 0600);  // an operator's choice stays
  CHECK(works(db, "w"));
  CHECK(mode(db.file() + "-owners") == 0600);
}

TEST_CASE("users of the group that may write to the database can work on it, one after the other") {
  if (geteuid() != 0) return;  // nobody else may become another user
  for (const mode_t folder_mode : {02775u, 0777u}) {
    for (const bool is_owner_first : {true, false}) {
      CAPTURE(folder_mode);
      CAPTURE(is_owner_first);
      sqlite_database db;
      const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
      REQUIRE(chown(folder.c_str(), first, group) == 0);
      chmod(folder.c_str(), folder_mode);
      const masked by(022);
      REQUIRE(as(first, [&] {
        db.open();
        return chown(db.file().c_str(), static_cast<uid_t>(-1), group) == 0 &&
               chmod(db.file().c_str(), 0664) == 0;
      }));
      CHECK(as(is_owner_first ? first : second, [&] { return works(db, "one"); }));
      CHECK(status(db.file() + "-owners").st_gid == group);
      CHECK(mode(db.file() + "-owners") == 0664);
      CHECK(as(is_owner_first ? second : first, [&] { return works(db, "other"); }));
    }
  }
}

TEST_CASE("what root makes beside a user's database is that user's") {
  if (geteuid() != 0) return;
  sqlite_database db;
  const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
  REQUIRE(chown(folder.c_str(), first, group) == 0);
  const masked by(022);
  REQUIRE(as(first, [&] { return db.open() != nullptr; }));
  CHECK(works(db, "root"));
  CHECK(status(db.file() + "-owners").st_uid == first);
  CHECK(status(db.file() + "-owners").st_gid == status(db.file()).st_gid);
  CHECK(as(first, [&] { return works(db, "first"); }));
}

TEST_CASE("a group that cannot be given the file of the owners' locks gets no rights on it by mistake") {
  if (geteuid() != 0) return;
  sqlite_database db;
  const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
  chmod(folder.c_str(), 0777);
  db.open();
  chmod(db.file().c_str(), 0666);
  REQUIRE(chown(db.file().c_str(), first, group + 10) == 0);
  CHECK(as(second, [&] { return works(db, "second"); }));
  CHECK(mode(db.file() + "-owners") == 0666);
  std::filesystem::remove(db.file() + "-owners");
  chmod(db.file().c_str(), 0660);
  REQUIRE(chown(db.file().c_str(), first, group + 10) == 0);  // of which the first user is no member
  CHECK(as(first, [&] { return works(db, "first"); }));
  CHECK(mode(db.file() + "-owners") == 0600);
}

TEST_CASE("a file of the owners' locks that cannot be written is refused, and the error says what it needs") {
  if (geteuid() != 0) return;
  sqlite_database db;
  const std::filesystem::path folder = std::filesystem::path(db.file()).parent_path();
  chmod(folder.c_str(), 0777);
  works(db, "root");
  REQUIRE(chown(db.file().c_str(), first, first) ==
          0);  // as an operator who runs the worker as another user from now on
  CHECK(as(first, [&] {
    return refusal(db) ==
           "rondo: SQLite, " + db.file() +
               "-owners: Permission denied (this process must be able to write to the file and "
               "to its folder)";
  }));
}

TEST_CASE("if a process has no free descriptor, the error says so and recommends nothing else") {
  sqlite_database db;
  works(db, "w");
  CHECK(child([&] {
          rlimit limit{};
          getrlimit(RLIMIT_NOFILE, &limit);
          limit.rlim_cur = 64;
          setrlimit(RLIMIT_NOFILE, &limit);
          std::vector<int> taken;
          for (int one; (one = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(one);
          int refusals = 0;
          for (std::string said; said = refusal(db), !said.empty(); taken.pop_back()) {
            ++refusals;
            if (taken.empty() || contains(said, "must be able") ||
                !contains(said, " (this process has too many files open: raise its limit, see ulimit -n)")) {
              std::cerr << refusals << ": " << said << '\n';
              return false;
            }
            close(taken.back());
          }
          return refusals > 3;  // the database, its log, the index of that, the owners
        }).succeeded());
}

/// Runs `f` in a process that has a file system of its own on the folder of the database. Returns true if that is not
/// allowed here.
template <class Function>
bool on_own_mount(const sqlite_database& db, const char* type, const char* options, Function f) {
  const std::string folder = std::filesystem::path(db.file()).parent_path().string();
  return child([&] {
           if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
             return true;
           if (type != nullptr) return mount(type, folder.c_str(), type, 0, options) != 0 || f();
           return mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
                  mount("none", folder.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0 ||
                  f();
         })
      .succeeded();
}

TEST_CASE("on a read-only file system the error says so, with and without a database there") {
  sqlite_database db;
  const auto is_refused = [&] {
    const std::string said = refusal(db);
    return contains(said, " (the file system is read-only)") && !contains(said, "must be able");
  };
  CHECK(on_own_mount(db, nullptr, nullptr, is_refused));
  works(db, "w");
  CHECK(on_own_mount(db, nullptr, nullptr, is_refused));
}

TEST_CASE("on a file system without room, opening and submitting fail with the advice to make some") {
  sqlite_database db;
  CHECK(on_own_mount(db, "tmpfs", "size=64k", [&] {
    const std::string said = refusal(db);
    return contains(said, "free some disk space");
  }));
  CHECK(on_own_mount(db, "tmpfs", "size=400k", [&] {
    const auto tasks = db.open_store();
    std::size_t accepted = 0;
    try {
      for (;; ++accepted) tasks->submit_after(1h, {.payload = std::string(3000, 'p')});
    } catch (const store_error& e) {
      return contains(e.what(), "free some disk space") && accepted > 3 &&
             db.ask("SELECT count(*) FROM rondo_task") == std::to_string(accepted);
    }
  }));
}

TEST_CASE("the log of a file that was replaced is kept until there is room to copy it into that file") {
  sqlite_database db;
  CHECK(on_own_mount(db, "tmpfs", "size=2M", [&] {
    const auto tasks = db.open_store();
    tasks->submit_after(1h, {});
    const std::string backup = db.file() + ".backup", aside = db.file() + ".aside",
                      rest = db.file() + ".rest";
    db.ask("VACUUM INTO '" + backup + "'");
    tasks->submit_all(
        std::vector<rondo::durable::planned>(99, {.what = {.payload = std::string(3000, 'p')}, .when = 1h}));
    std::filesystem::rename(db.file(), aside);
    std::filesystem::rename(backup, db.file());
    {
      std::ofstream all(rest, std::ios::binary);
      while (all << std::string(4096, 'f') << std::flush) {
      }
    }
    const std::string said = error_of([&] { tasks->submit_after(1h, {}); });
    std::filesystem::remove(rest);
    const std::int64_t id = tasks->submit_after(1h, {});
    sqlite3* opened = nullptr;
    sqlite3_open(aside.c_str(), &opened);
    std::string count;
    sqlite3_exec(
        opened, "SELECT count(*) FROM rondo_task",
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0];
          return 0;
        },
        &count, nullptr);
    sqlite3_close(opened);
    if (contains(said, "free some disk space") && id == 2 && count == "100") return true;
    std::cerr << said << ' ' << id << ' ' << count << '\n';
    return false;
  }));
}

TEST_CASE("a folder that does not exist, or is the file itself, is named as what is wrong") {
  const temporary_folder folder;
  const auto said = [&](const std::filesystem::path& file) {
    try {
      rondo::durable::store::open("sqlite:" + file.string());
      return std::string();
    } catch (const store_error& e) {
      return std::string(e.what());
    }
  };
  CHECK(contains(said(folder.path() / "none" / "tasks.db"), " (there is no such folder)"));
  CHECK(contains(said(folder.path()), " (this is a folder)"));
}

}  // namespace durable_sqlite_faults
