// What other users, the limits of a process and its file systems allow, and what the errors advise.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "durable/child.hpp"
#include "durable/sqlite_database.hpp"

namespace durable_sqlite_rights {

using namespace durable_test;
using rondo::durable::store_error;
using rondo::durable::detail::store_access;

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

}  // namespace durable_sqlite_rights
