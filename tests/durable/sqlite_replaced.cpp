// The file is removed, replaced or restored while stores and dispatchers have it open.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "durable/child.hpp"
#include "durable/errors.hpp"
#include "durable/sqlite_database.hpp"
#include "threads/patience.hpp"

namespace durable_sqlite_replaced {

using namespace durable_test;
using rondo::durable::store;
using rondo::durable::detail::store_access;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool eventually(const auto& holds) {
  const auto end = std::chrono::steady_clock::now() + rondo::test::patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// Reads through a connection of its own, which leaves nothing beside the file.
std::string ask(const std::string& file, const std::string& sql) {
  sqlite3* opened = nullptr;
  std::string result;
  const auto take = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) = values[0] == nullptr ? "" : values[0];
    return 0;
  };
  const bool done = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
                    sqlite3_busy_timeout(opened, 10'000) == SQLITE_OK &&
                    sqlite3_exec(opened, sql.c_str(), take, &result, nullptr) == SQLITE_OK;
  if (!done) result = sqlite3_errmsg(opened);
  sqlite3_close(opened);
  return result;
}

/// A store and a session of one process.
struct in_use {
  sqlite_database db;
  std::shared_ptr<rondo::durable::detail::engine> engine;
  std::unique_ptr<store> tasks;
  std::unique_ptr<rondo::durable::detail::session> session;
  const std::string file = db.file(), backup = file + ".backup", aside = file + ".aside";

  in_use() {
    auto settings = db.settings();
    settings.patience = 50ms;
    engine = rondo::durable::detail::sqlite::open(file, settings);
    tasks = store_access::make(engine);
    session = engine->connect("w", worker::default_rules());
  }
  std::string take() {
    return error_of([&] { session->take({.claim_up_to = 100}); });
  }
  void back_up() { CHECK(ask(file, "VACUUM INTO '" + backup + "'") == ""); }
};

TEST_CASE("a file that has been removed is not made again, and submissions and turns are refused") {
  in_use x;
  const std::int64_t id = x.tasks->submit_after(0s, {});
  CHECK(x.take() == "");
  CHECK(std::filesystem::remove(x.file));
  const std::string why =
      "rondo: SQLite, " + x.file + ": the file has been removed: until there is one again, nothing can be ";
  for (int i = 0; i != 2; ++i) {
    CHECK(contains(error_of([&] { x.tasks->submit_after(0s, {}); }), why));
    CHECK(contains(error_of([&] { x.tasks->cancel(id); }), why));
    CHECK(contains(error_of([&] { x.tasks->find(id); }), why));
    CHECK(x.session->changed());
    CHECK(contains(x.take(), why));
    CHECK(contains(error_of([&] { x.engine->connect("other", worker::default_rules()); }), why));
  }
  CHECK(!std::filesystem::exists(x.file));
  CHECK(!std::filesystem::exists(x.file + "-wal"));  // as it would be taken for that of a new file
}

TEST_CASE("what was in a file that has been removed can be copied from the process, which then goes on") {
  in_use x;
  const std::int64_t id = x.tasks->submit_after(0s, {.payload = "saved"});
  CHECK(std::filesystem::remove(x.file));
  CHECK(x.take() != "");
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    if (std::filesystem::read_symlink(each, none) == x.file + " (deleted)")
      std::filesystem::copy_file(each, x.backup, std::filesystem::copy_options::overwrite_existing);
  }
  std::filesystem::rename(x.backup, x.file);
  CHECK(contains(x.take(), "the file has been replaced"));
  CHECK(x.session->take({.claim_up_to = 1}).claimed.at(0).what.id == id);
  CHECK(x.tasks->find(id)->payload == "saved");
  CHECK(x.tasks->submit_after(0s, {}) == id + 1);
}

TEST_CASE("a backup that is put in the place of the file is opened, and what was held before is not begun") {
  in_use x;
  for (const bool is_kept : {false, true}) {
    CAPTURE(is_kept);
    const std::int64_t restored = x.tasks->submit_after(0s, {.payload = "restored"});
    x.back_up();
    x.tasks->submit_after(0s, {.payload = "late"});
    std::vector<ticket> held;
    for (const auto& c : x.session->take({.claim_up_to = 100}).claimed) held.push_back(ticket_of(c));
    CHECK(held.size() >= 2);
    const std::string all = ask(x.file, "SELECT count(*) FROM rondo_task");
    if (is_kept) std::filesystem::rename(x.file, x.aside);
    std::filesystem::rename(x.backup, x.file);

    CHECK(x.session->changed());
    CHECK(contains(error_of([&] { x.session->take({.begun = held}); }), "the file has been replaced"));
    CHECK(x.session->take({.begun = held, .adopt = true}).begun.empty());
    if (is_kept) CHECK(ask(x.aside, "SELECT count(*) FROM rondo_task") == all);
    const std::int64_t fresh = x.tasks->submit_after(0s, {.payload = "new"});
    CHECK(x.tasks->find(restored)->payload == "restored");
    CHECK(ask(x.file, "SELECT count(*) FROM rondo_task WHERE id = " + std::to_string(fresh)) == "1");
    std::vector<ticket> claimed;
    for (const auto& c : x.session->take({.claim_up_to = 100}).claimed) claimed.push_back(ticket_of(c));
    CHECK(claimed.size() >= 2);
    CHECK(x.session->take({.begun = claimed}).begun == claimed);
    CHECK(x.session->take({.finished = claimed}).finished == claimed);
    CHECK(ask(x.file, "PRAGMA integrity_check") == "ok");
    CHECK(ask(x.file, "SELECT group_concat(name) FROM rondo_owner") == "w");
    x.session->changed();
    CHECK(!x.session->changed());
  }
}

TEST_CASE("a file that was moved away, and is back, is used again, also by a store that did not notice") {
  in_use x;
  const std::int64_t id = x.tasks->submit_after(0s, {});
  std::filesystem::rename(x.file, x.aside);
  CHECK(x.take() != "");
  CHECK(ask(x.aside, "SELECT count(*) FROM rondo_task") == "1");
  std::filesystem::rename(x.aside, x.file);
  CHECK(contains(x.take(), "the file has been replaced"));
  CHECK(ids_of(x.session->take({.claim_up_to = 9}).claimed) == std::vector{id});
  CHECK(x.tasks->submit_after(0s, {}) == id + 1);
  CHECK(x.session->take({.claim_up_to = 9}).claimed.size() == 1);
  CHECK(ask(x.file, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("a file that is back is opened only when no connection of the process uses its old log") {
  in_use x;
  const auto other = x.db.open_store();  // another store of the same process
  x.tasks->submit_after(0s, {});
  std::filesystem::rename(x.file, x.aside);
  CHECK(x.take() != "");
  std::filesystem::rename(x.aside, x.file);
  CHECK(contains(x.take(), "the file has been replaced"));
  CHECK(contains(x.take(), "the file was removed or replaced, and is back"));
  CHECK(x.session->changed());
  CHECK(other->submit_after(0s, {}) == 2);
  CHECK(x.session->take({.claim_up_to = 9}).claimed.size() == 2);
  CHECK(ask(x.file, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("a file that is empty, or not there in full, is not written to while it is being copied") {
  in_use x;
  for (int i = 0; i != 200; ++i) x.tasks->submit_after(0s, {.payload = std::string(2000, 'p')});
  x.back_up();
  std::filesystem::remove(x.file);
  CHECK(x.take() != "");
  std::string whole;
  {
    std::ifstream from(x.backup, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(from), {});
  }
  std::ofstream to(x.file, std::ios::binary);
  to.flush();
  for (int i = 0; i != 3; ++i) {
    CHECK(contains(error_of([&] { x.tasks->submit_after(0s, {}); }), "replaced by an empty one"));
    CHECK(x.take() != "");
  }
  CHECK(std::filesystem::file_size(x.file) == 0);
  const std::size_t half = 10 * 4096;
  REQUIRE(whole.size() > 4 * half);
  to.write(whole.data(), half).flush();
  for (int i = 0; i != 3; ++i) {
    CHECK(error_of([&] { x.tasks->submit_after(0s, {}); }) != "");
    CHECK(x.take() != "");
  }
  to.write(whole.data() + half, static_cast<std::streamsize>(whole.size() - half)).flush();
  CHECK(x.session->take({.claim_up_to = 1000}).claimed.size() == 200);
  CHECK(x.tasks->submit_after(0s, {}) == 201);
  CHECK(ask(x.file, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("a call in a transaction of a connection to the file from before is refused") {
  in_use x;
  const auto theirs = x.db.connect();
  x.back_up();
  std::filesystem::rename(x.backup, x.file);
  theirs->execute("BEGIN IMMEDIATE");
  CHECK(contains(error_of([&] { x.tasks->submit_after(theirs->handle(), 0s, {}); }),
                 "must be closed and opened anew"));
  theirs->execute("ROLLBACK");
  const auto anew = x.db.connect();
  anew->execute("BEGIN IMMEDIATE");
  CHECK(x.tasks->submit_after(anew->handle(), 0s, {}) == 1);
  anew->execute("COMMIT");
}

TEST_CASE("while somebody else's log has to be kept for a reader of the old file, no other file is opened") {
  in_use x;
  x.tasks->submit_after(0s, {});
  x.back_up();
  const auto theirs = x.db.connect();
  theirs->execute("BEGIN; SELECT count(*) FROM rondo_task");
  x.tasks->submit_after(0s, {});
  x.tasks->submit_after(0s, {.payload = std::string(5000, 'p')});
  std::filesystem::rename(x.file, x.aside);
  std::filesystem::rename(x.backup, x.file);
  CHECK(contains(x.take(), "and another connection still reads it"));
  CHECK(contains(error_of([&] { x.tasks->submit_after(0s, {}); }), "and another connection still reads it"));
  theirs->execute("COMMIT");
  CHECK(contains(x.take(), "the file has been replaced"));
  CHECK(ask(x.aside, "SELECT count(*) FROM rondo_task") == "3");
  CHECK(x.session->take({.claim_up_to = 9}).claimed.size() == 1);
}

TEST_CASE("a store is not opened on a file whose forerunner another store of the process still has open") {
  in_use x;
  x.tasks->submit_after(0s, {.payload = "restored"});
  x.back_up();
  for (int i = 0; i != 3; ++i) x.tasks->submit_after(0s, {.payload = "in the log of the old file"});
  std::filesystem::rename(x.backup, x.file);
  CHECK(contains(error_of([&] { x.db.open_store(); }),
                 ": the file has been removed or replaced. It can be opened"));
  CHECK(contains(x.take(), "the file has been replaced: the new one is opened next"));
  const auto other = x.db.open_store();
  CHECK(other->list("default").size() == 1);
  CHECK(other->submit_after(0s, {}) == 2);
  CHECK(x.session->take({.claim_up_to = 9}).claimed.size() == 2);
  CHECK(ask(x.file, "PRAGMA integrity_check") == "ok");
}

TEST_CASE("no store makes a new file while another one of the process has the old one open, which is gone") {
  in_use x;
  x.tasks->submit_after(0s, {});
  std::filesystem::remove(x.file);
  CHECK(contains(error_of([&] { x.db.open_store(); }),
                 ": the file has been removed or replaced. It can be opened"));
  CHECK(!std::filesystem::exists(x.file));
  CHECK(x.take() != "");
  CHECK(x.db.open_store()->submit_after(0s, {}) == 1);
}

TEST_CASE("a checkpoint that comes after the file was replaced copies nothing into the new one") {
  sqlite_database db;
  const std::string backup = db.file() + ".backup";
  struct replacement {
    std::string from, to;
    bool is_due = false;
    static int make(void* self) {  // in the commit that makes the log long
      auto& r = *static_cast<replacement*>(self);
      if (std::exchange(r.is_due, false)) std::filesystem::rename(r.from, r.to);
      return 0;
    }
  } replaces{backup, db.file()};
  auto settings = db.settings();
  settings.connected = [&](sqlite3* made) { sqlite3_commit_hook(made, replacement::make, &replaces); };
  const auto tasks = store_access::make(rondo::durable::detail::sqlite::open(db.file(), settings));
  tasks->submit_after(0s, {});
  CHECK(ask(db.file(), "VACUUM INTO '" + backup + "'") == "");
  const auto contents = [](const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = contents(backup);
  replaces.is_due = true;
  tasks->submit_all(
      std::vector<rondo::durable::planned>(1100, {.what = {.payload = std::string(4096, 'p')}}));
  for (int i = 0; i != 200 && contents(db.file()) == before; ++i) std::this_thread::sleep_for(1ms);
  CHECK((contents(db.file()) == before));
  CHECK(tasks->list("default").size() == 1);
  CHECK(ask(db.file(), "PRAGMA integrity_check") == "ok");
}

TEST_CASE(
    "a store that is opened while the last other one is closed does not take the file for another one") {
  const sqlite_database db;
  store::open(db.url());
  std::vector<std::string> said(3);
  std::vector<std::thread> all;
  for (std::string& mine : said)
    all.emplace_back([&] {
      for (int i = 0; i != 60 && mine.empty(); ++i)
        mine = error_of([&] { store::open(db.url())->submit_after(1h, {}); });
    });
  for (std::thread& t : all) t.join();
  for (const std::string& mine : said) CHECK(mine == "");
  CHECK(ask(db.file(), "SELECT count(*) FROM rondo_task") == "180");
}

TEST_CASE("with links to a file, it is not opened: each name would have a log of its own") {
  sqlite_database db;
  const std::string link = db.file() + ".link";
  store::open(db.url());
  std::filesystem::create_hard_link(db.file(), link);
  for (const std::string& url : {db.url(), "sqlite:" + link})
    CHECK(contains(error_of([&] { store::open(url); }), ": the file has 2 names (hard links)"));
  std::filesystem::remove(link);
  const auto opened = store::open(db.url());
  std::filesystem::create_hard_link(db.file(), link);  // as for a backup
  CHECK(opened->submit_after(0s, {}) == 1);
  rondo::timer timer;
  rondo::test::gate ran;
  const rondo::durable::dispatcher runs(timer, *opened, [&](const rondo::durable::task&) { ran.open(); });
  CHECK(ran.wait(1));
}

/// Runs tasks on real time, and notes their payloads and the reported errors.
struct worker_thread {
  rondo::timer timer;
  std::mutex mutex;
  std::multiset<std::string> ran;
  std::vector<std::string> errors;
  rondo::durable::dispatcher runs;

  explicit worker_thread(store& on)
      : runs(timer, on,
             [this](const rondo::durable::task& t) {
               const std::lock_guard hold(mutex);
               ran.insert(t.payload);
             },
             {.on_error = [this](const std::string& line) {
               const std::lock_guard hold(mutex);
               errors.push_back(line);
             }}) {}

  bool has_run(const std::string& payload) {
    const std::lock_guard hold(mutex);
    return ran.count(payload) != 0;
  }
  bool was_told(const std::string& part) {
    const std::lock_guard hold(mutex);
    return std::ranges::any_of(errors, [&](const auto& e) { return contains(e, part); });
  }
};

TEST_CASE("a dispatcher reports that the file is gone, and runs the tasks of the one that is put there") {
  const sqlite_database db;
  const auto tasks = store::open(db.url());
  tasks->submit_after(2s, {.payload = "of the backup"});
  const std::string backup = db.file() + ".backup";
  CHECK(ask(db.file(), "VACUUM INTO '" + backup + "'") == "");
  worker_thread w(*tasks);
  tasks->submit_after(0s, {.payload = "before"});
  CHECK(eventually([&] { return w.has_run("before"); }));
  tasks->submit_after(200ms, {.payload = "removed"});
  std::filesystem::remove(db.file());
  CHECK(eventually([&] { return w.was_told("the file has been removed"); }));
  CHECK(error_of([&] { tasks->submit_after(0s, {.payload = "refused"}); }) != "");
  std::filesystem::rename(backup, db.file());
  CHECK(eventually([&] { return error_of([&] { tasks->submit_after(0s, {.payload = "after"}); }) == ""; }));
  CHECK(eventually([&] { return w.has_run("of the backup") && w.has_run("after"); }));
  CHECK(w.was_told("the file has been replaced"));
  CHECK(!w.has_run("removed"));
  CHECK(!w.has_run("refused"));
  CHECK(ask(db.file(), "PRAGMA integrity_check") == "ok");
}

TEST_CASE("a dispatcher goes on with the state that is restored into the file itself") {
  const sqlite_database db;
  const auto tasks = store::open(db.url());
  tasks->submit_after(1s, {.payload = "of the backup"});
  const std::string backup = db.file() + ".backup";
  CHECK(ask(db.file(), "VACUUM INTO '" + backup + "'") == "");
  worker_thread w(*tasks);
  tasks->submit_after(0s, {.payload = "before"});
  tasks->submit_after(1h, {.payload = "gone"});
  CHECK(eventually([&] { return w.has_run("before"); }));
  {
    sqlite3 *from = nullptr, *to = nullptr;
    REQUIRE(sqlite3_open(backup.c_str(), &from) == SQLITE_OK);
    REQUIRE(sqlite3_open(db.file().c_str(), &to) == SQLITE_OK);
    sqlite3_busy_timeout(to, 10'000);
    sqlite3_backup* copy = sqlite3_backup_init(to, "main", from, "main");
    REQUIRE(copy != nullptr);
    CHECK(eventually([&] { return sqlite3_backup_step(copy, -1) == SQLITE_DONE; }));
    CHECK(sqlite3_backup_finish(copy) == SQLITE_OK);
    sqlite3_close(from);
    sqlite3_close(to);
  }
  tasks->submit_after(0s, {.payload = "after"});
  CHECK(eventually([&] { return w.has_run("of the backup") && w.has_run("after"); }));
  CHECK(eventually([&] { return ask(db.file(), "SELECT count(*) FROM rondo_task") == "0"; }));
}

/// A process with a dispatcher that notes what it has run in a file, until that file is gone.
bool run_until_removed(const std::string& url, const std::string& journal) {
  const auto tasks = store::open(url);
  worker_thread w(*tasks);
  std::size_t told = 0;
  return eventually([&] {
    const std::lock_guard hold(w.mutex);
    if (!std::filesystem::exists(journal)) return true;
    if (std::ofstream all(journal, std::ios::app); w.ran.size() + w.errors.size() != told) {
      all.seekp(0, std::ios::end);
      told = w.ran.size() + w.errors.size();
      for (const auto& each : w.ran) all << each << '\n';
      for (const auto& each : w.errors) all << each << '\n';
    }
    return false;
  });
}

TEST_CASE("the workers of several processes go over to the file that replaces theirs, and none damages it") {
  const sqlite_database db;
  const std::string backup = db.file() + ".backup";
  const std::vector<std::string> journals{db.file() + ".1", db.file() + ".2"};
  const auto read = [](const std::string& name) {
    std::ifstream in(name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  store::open(db.url());
  std::filesystem::copy_file(db.file(), backup);
  std::vector<std::unique_ptr<child>> workers;
  for (const auto& journal : journals) {
    std::ofstream(journal) << "";
    workers.push_back(std::make_unique<child>([&] { return run_until_removed(db.url(), journal); }));
  }
  {
    const auto tasks = store::open(db.url());
    for (int i = 0; i != 100; ++i) tasks->submit_after(0s, {.payload = "old"});
    tasks->submit_after(400ms, {.payload = "lost"});
    CHECK(eventually([&] { return contains(read(journals[0]) + read(journals[1]), "old"); }));
  }
  std::filesystem::rename(backup, db.file());
  for (const auto& journal : journals)
    CHECK(eventually([&] { return contains(read(journal), "the file has been replaced"); }));
  {
    const auto tasks = store::open(db.url());
    for (int i = 0; i != 100; ++i) tasks->submit_after(0s, {.payload = "new"});
    CHECK(eventually([&] { return ask(db.file(), "SELECT count(*) FROM rondo_task") == "0"; }));
  }
  CHECK(eventually([&] { return contains(read(journals[0]) + read(journals[1]), "new"); }));
  CHECK(ask(db.file(), "PRAGMA integrity_check") == "ok");
  for (const auto& journal : journals) {
    CHECK(!contains(read(journal), "lost\n"));
    CHECK(!contains(read(journal), "malformed"));
    std::filesystem::remove(journal);
  }
  for (const auto& each : workers) CHECK(each->succeeded());
}

}  // namespace durable_sqlite_replaced
