// An origin that is a folder.
#include <doctest/doctest.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "cache_refresh/origin_checks.hpp"
#include "cache_refresh/refreshed_origin.hpp"
#include "cache_refresh/temporary_folder.hpp"

namespace cache_refresh_origin_file {

using namespace cache_refresh;
using namespace cache_refresh_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::unique_ptr<origin> open_folder(const temporary_folder& folder) {
  return open_origin({.url = "file:" + folder.path.string()});
}

record load(origin& from, const std::string& key) {
  auto given = from.connect()->load(key, nullptr, 1s);
  REQUIRE(given.changed);
  return *given.changed;
}

TEST_CASE("schemes: the error for an unknown scheme names it and the known ones") {
  const std::string unknown = error_of_opening({.url = "ftp://there/"});
  CHECK(contains(unknown, "ftp: is unknown"));
  CHECK(contains(unknown, "file:, sqlite:"));
  CHECK(contains(error_of_opening({.url = "origin.db"}), "is not a URL"));
  CHECK(contains(error_of_opening({.url = ""}), "is not a URL"));
}

TEST_CASE("schemes: queries come in pairs, and only for databases") {
  CHECK(contains(error_of_opening({.url = "sqlite:x", .list_query = "SELECT 1"}), "or neither"));
  CHECK(contains(error_of_opening({.url = "file:/tmp", .list_query = "a", .load_query = "b"}),
                 "takes no queries"));
}

#ifndef RONDO_EXAMPLE_HTTP
TEST_CASE("schemes: the error for a scheme that was not built says what it needs") {
  CHECK(contains(error_of_opening({.url = "https://there/"}), "https: needs a build with libcurl"));
}
#endif

TEST_CASE("file: the keys are the regular files, sorted, without hidden ones") {
  const temporary_folder folder;
  for (const char* name : {"b", "a c", "ä", ".hidden", "a"}) folder.write(name, "x");
  fs::create_directory(folder.path / "sub");
  fs::create_symlink("a", folder.path / "link");
  fs::create_symlink("nowhere", folder.path / "dangling");
  REQUIRE(::mkfifo((folder.path / "pipe").c_str(), 0600) == 0);

  const auto there = open_folder(folder);
  CHECK(there->keys(0) == std::vector<std::string>{"a", "a c", "b", "link", "ä"});
  CHECK(there->keys(2) == std::vector<std::string>{"a", "a c"});
  CHECK(contains(there->name(), folder.path.string()));
}

TEST_CASE("file: a path that is not a folder is refused") {
  const temporary_folder folder;
  folder.write("file", "x");
  CHECK(contains(error_of_opening({.url = "file:" + folder.path.string() + "/no"}), "No such file"));
  CHECK(contains(error_of_opening({.url = "file:" + folder.path.string() + "/file"}), "Not a directory"));
  CHECK(error_of_opening({.url = "file:"}) != "");
}

TEST_CASE("file: a value may have any bytes, and has no TTL") {
  const temporary_folder folder;
  std::string bytes(100'000, 'x');
  bytes[500] = '\0';
  folder.write("long", bytes);
  folder.write("empty", "");
  const auto there = open_folder(folder);
  const auto loader = there->connect();
  const answer given = loader->load("long", nullptr, 1s);
  REQUIRE(given.changed);
  CHECK(given.changed->value == bytes);
  CHECK(!given.ttl.soft);
  CHECK(!given.ttl.hard);
  CHECK(load(*there, "empty").value.empty());
}

TEST_CASE("file: a file that has not changed is not read again") {
  const temporary_folder folder;
  folder.write("a", "one");
  const auto there = open_folder(folder);
  const record held = load(*there, "a");
  CHECK(!there->connect()->load("a", &held, 1s).changed);

  // Another text with the same time, size and inode, which would be seen if the file were read.
  const auto time = fs::last_write_time(folder.path / "a");
  folder.write("a", "two");
  fs::last_write_time(folder.path / "a", time);
  CHECK(!there->connect()->load("a", &held, 1s).changed);

  folder.write("a", "three");
  const answer later = there->connect()->load("a", &held, 1s);
  REQUIRE(later.changed);
  CHECK(later.changed->value == "three");
  CHECK(later.changed->validator != held.validator);
}

TEST_CASE("file: another file with the same time and size has another validator") {
  const temporary_folder folder;
  folder.write("a", "one");
  const auto there = open_folder(folder);
  const record held = load(*there, "a");
  folder.write("b", "two");
  fs::last_write_time(folder.path / "b", fs::last_write_time(folder.path / "a"));
  fs::rename(folder.path / "b", folder.path / "a");
  const answer later = there->connect()->load("a", &held, 1s);
  REQUIRE(later.changed);
  CHECK(later.changed->value == "two");
}

TEST_CASE("file: a file that has vanished, cannot be read or is not regular is an error") {
  const temporary_folder folder;
  folder.write("a", "one");
  folder.write("secret", "x");
  fs::create_directory(folder.path / "sub");
  REQUIRE(::mkfifo((folder.path / "pipe").c_str(), 0600) == 0);
  const auto there = open_folder(folder);
  const auto loader = there->connect();
  const auto error = [&](const std::string& key) {
    return error_of([&] { loader->load(key, nullptr, 1s); });
  };

  fs::remove(folder.path / "a");
  CHECK(error("a") == "a: No such file or directory");
  CHECK(contains(error("sub"), "is not a regular file"));
  CHECK(contains(error("pipe"), "is not a regular file"));
  if (::geteuid() != 0) {
    fs::permissions(folder.path / "secret", fs::perms::none);
    CHECK(error("secret") == "secret: Permission denied");
  }
  folder.write("a", "again");
  CHECK(error("a") == "");
}

TEST_CASE("file: no key leads out of the folder") {
  const temporary_folder outer;
  outer.write("secret", "x");
  fs::create_directory(outer.path / "inner");
  const auto there = open_origin({.url = "file:" + (outer.path / "inner").string()});
  for (const std::string key : {"../secret", "..", "", ".", "/etc/passwd", "sub/../../secret"}) {
    CAPTURE(key);
    CHECK(contains(error_of([&] { there->connect()->load(key, nullptr, 1s); }), "not a valid file name"));
    CHECK(contains(error_of([&] { there->edit()->change(key, "1", [] {}); }), "not a valid file name"));
  }
}

TEST_CASE("file: an editor replaces the mark, and the change is not visible before `before` has returned") {
  const temporary_folder folder;
  folder.write("a", "text");
  fs::permissions(folder.path / "a", fs::perms::owner_all);
  const auto there = open_folder(folder);
  const auto editor = there->edit();
  const record old = load(*there, "a");
  int calls = 0;
  const std::string validator = editor->change("a", "1", [&] {
    ++calls;
    CHECK(folder.read("a") == "text");
    CHECK(there->keys(0) == std::vector<std::string>{"a"});
  });
  CHECK(calls == 1);
  CHECK(folder.read("a") == "text [edit 1]");
  CHECK(validator == load(*there, "a").validator);
  CHECK(validator != old.validator);

  const std::string second = editor->change("a", "2", [] {});
  CHECK(folder.read("a") == "text [edit 2]");
  CHECK(second != validator);
  CHECK(fs::status(folder.path / "a").permissions() == fs::perms::owner_all);
}

TEST_CASE("file: a change that fails leaves the file as it was, and no other file") {
  const temporary_folder folder;
  folder.write("a", "text");
  const auto there = open_folder(folder);
  CHECK_THROWS_AS(there->edit()->change("a", "1", [] { throw 1; }), int);
  CHECK(folder.read("a") == "text");
  CHECK(contains(error_of([&] { there->edit()->change("gone", "1", [] {}); }), "No such file"));
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("file: changes in quick succession have different validators") {
  const temporary_folder folder;
  folder.write("a", "text");
  const auto there = open_folder(folder);
  const auto editor = there->edit();
  std::string last;
  for (int i = 0; i < 300; ++i) {
    const std::string next = editor->change("a", std::to_string(i % 10), [] {});
    REQUIRE(next != last);
    last = next;
  }
}

#ifdef __linux__
TEST_CASE("file: news reports files that are written, replaced and removed, but not hidden ones") {
  const temporary_folder folder;
  folder.write("a", "1");
  const auto there = open_folder(folder);
  heard_keys heard;
  const auto news = there->watch(heard.listener());
  REQUIRE(news);
  folder.write(".hidden", "x");
  folder.write("a", "2");
  CHECK(heard.wait_for("a"));
  there->edit()->change("a", "1", [] {});
  CHECK(heard.wait_for("a", 2));
  folder.write("new", "1");
  CHECK(heard.wait_for("new"));
  fs::remove(folder.path / "new");
  CHECK(heard.wait_for("new", 2));
  CHECK(heard.times("a") == 2);
  CHECK(heard.times(".hidden") == 0);
}

TEST_CASE("file: a changed file is loaded at once into a cache whose TTL is an hour") {
  const temporary_folder folder;
  folder.write("a", "one");
  const auto there = open_folder(folder);
  refreshed_origin running(*there, {.soft_ttl = 1h, .hard_ttl = 2h});
  REQUIRE(becomes([&] { return running.value("a") == "one"; }));
  folder.write("a", "two");
  CHECK(becomes([&] { return running.value("a") == "two"; }));

  // After the file is removed, the value is still served, and the load fails.
  fs::remove(folder.path / "a");
  CHECK(becomes([&] { return running.cache.count().failing == 1; }));
  CHECK(running.value("a") == "two");
}
#endif

}  // namespace cache_refresh_origin_file
