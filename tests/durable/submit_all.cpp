// Lists of submissions: all or none. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/database.hpp"

namespace durable_submit_all {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::planned;
using rondo::durable::store_error;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();

  std::size_t rows() const { return db->rows().size(); }
};

/// The id that key_taken names, or -1 if the list is accepted.
std::int64_t taken_by(in_use& x, const std::vector<planned>& all) {
  try {
    x.tasks->submit_all(all);
    return -1;
  } catch (const key_taken& e) {
    return e.id();
  }
}

TEST_CASE("each task of a list is found as it was submitted, and the ids are in the order of the list") {
  in_use x;
  const auto due = std::chrono::ceil<std::chrono::microseconds>(x.db->now() + 2h);
  const std::string nasty("a\0'\\\"{},NULL\xff", 14);
  const std::vector<planned> all = {
      {.what = {.queue = "a", .payload = nasty, .key = "k\"\\{},NULL"}, .when = due - 1ns},
      {.what = {.queue = "b", .payload = std::string(1000, 'x')}, .when = 1h},
      {},
      {.what = {.queue = "a", .payload = "last", .key = "NULL"}, .when = -5h}};
  const auto before = x.db->now();
  const auto ids = x.tasks->submit_all(all);
  const auto after = x.db->now();
  REQUIRE(ids.size() == 4);
  CHECK(std::ranges::is_sorted(ids));
  CHECK(ids[0] > 0);
  for (std::size_t i = 0; i != all.size(); ++i) {
    const auto found = x.tasks->find(ids[i]);
    REQUIRE(found);
    CHECK(found->queue == all[i].what.queue);
    CHECK((found->payload == all[i].what.payload));
    CHECK(found->key == all[i].what.key);
    CHECK(found->attempt == 0);
  }
  CHECK(x.tasks->find(ids[0])->due == due);
  CHECK(x.tasks->find(ids[1])->due >= before + 1h);
  CHECK(x.tasks->find(ids[1])->due <= after + 1h + 1us);
  CHECK(x.tasks->find(ids[3])->due >= before);  // a negative delay is zero
  CHECK(x.rows() == 4);
}

TEST_CASE("an empty list adds nothing") {
  in_use x;
  CHECK(x.tasks->submit_all({}).empty());
  CHECK(x.rows() == 0);
}

TEST_CASE("a list of more tasks than one statement adds") {
  in_use x;
  std::vector<planned> all(25'000);
  for (std::size_t i = 0; i != all.size(); ++i) {
    all[i] = {.what = {.payload = std::to_string(i)}, .when = 1h};
    if (i % 1000 == 0) all[i].what = {.payload = std::string(300, 'x'), .key = std::to_string(i)};
  }
  const auto ids = x.tasks->submit_all(all);
  REQUIRE(ids.size() == all.size());
  CHECK(std::ranges::is_sorted(ids));
  for (const std::size_t i : {0u, 1u, 9'999u, 10'000u, 10'001u, 20'000u, 24'999u})
    CHECK(x.tasks->find(ids[i])->payload == all[i].what.payload);
  CHECK(x.rows() == 25000);
  CHECK(x.db->wrong() == "");
}

TEST_CASE("simple tasks of a list and others have their own ids, payloads and due times, wherever they are") {
  for (const std::size_t size : {49u, 50u, 51u, 99u, 100u, 101u, 150u}) {
    for (const std::size_t special : {std::size_t{0}, std::size_t{50}, size - 1, size}) {
      CAPTURE(size);
      CAPTURE(special);
      in_use x;
      std::vector<planned> all(size);
      for (std::size_t i = 0; i != size; ++i)
        all[i] = {.what = {.payload = std::to_string(i), .max_attempts = static_cast<int>(i)},
                  .when = std::chrono::hours(i + 1)};
      if (special < size) all[special].what.key = "k";
      const auto now = x.db->now();
      const auto ids = x.tasks->submit_all(all);
      REQUIRE(ids.size() == size);
      for (std::size_t i = 0; i != size; ++i) {
        const auto found = x.tasks->find(ids[i]);
        REQUIRE(found);
        CHECK(found->payload == std::to_string(i));
        CHECK(found->key == (i == special ? "k" : ""));
        CHECK(found->due >= now + std::chrono::hours(i + 1));
        CHECK(found->due < now + std::chrono::hours(i + 1) + 1min);
      }
    }
  }
}

TEST_CASE("a list of payloads that are too long for one statement") {
  in_use x;
  std::vector<planned> all(5);
  for (std::size_t i = 0; i != all.size(); ++i)
    all[i] = {.what = {.payload = std::string(std::size_t{7} << 20, static_cast<char>('a' + i))}, .when = 1h};
  const auto ids = x.tasks->submit_all(all);
  REQUIRE(ids.size() == 5);
  for (std::size_t i = 0; i != all.size(); ++i)
    CHECK((x.tasks->find(ids[i])->payload == all[i].what.payload));
}

TEST_CASE("the first key of a list that a live task has refuses the whole list") {
  in_use x;
  const std::int64_t one = x.tasks->submit_after(1h, {.key = "1"});
  const std::int64_t two = x.tasks->submit_after(1h, {.key = "2"});
  const std::string large(1000, 'x');
  CHECK(taken_by(x, {{.what = {.payload = large}}, {.what = {.key = "2"}}, {.what = {.key = "1"}}}) == two);
  CHECK(taken_by(x, {{.what = {.key = "1"}}, {.what = {.key = "2"}}}) == one);
  CHECK(x.rows() == 2);
  CHECK(x.db->wrong() == "");
  CHECK(taken_by(x, {{.what = {.queue = "other", .key = "1"}}}) == -1);
}

TEST_CASE("a key that is twice in a list refuses it, also if the second one is to replace the first") {
  in_use x;
  for (const bool replace : {false, true}) {
    CHECK(taken_by(x, {{.what = {.key = "k"}}, {.what = {.key = "k", .replace = replace}}}) == 0);
    CHECK(x.rows() == 0);
  }
  try {
    x.tasks->submit_all(std::vector<planned>{{.what = {.key = "k"}}, {}, {.what = {.key = "k"}}});
    FAIL("it was accepted");
  } catch (const key_taken& e) {
    CHECK(std::string(e.what()) ==
          "rondo: an earlier task of the list and of the queue \"default\" has the key \"k\"");
  }
  // The order in the list decides which key is named.
  const std::int64_t live = x.tasks->submit_after(1h, {.key = "live"});
  CHECK(taken_by(x, {{.what = {.key = "k"}}, {.what = {.key = "live"}}, {.what = {.key = "k"}}}) == live);
  CHECK(taken_by(x, {{.what = {.key = "k"}}, {.what = {.key = "k"}}, {.what = {.key = "live"}}}) == 0);
  CHECK(taken_by(x, {{.what = {.queue = "a", .key = "k"}}, {.what = {.queue = "b", .key = "k"}}}) == -1);
}

TEST_CASE(
    "a list replaces the tasks with its keys where it says so, and a run in progress is then the last") {
  in_use x;
  worker w(*x.db);
  const std::int64_t waiting = x.tasks->submit_after(1h, {.key = "waits"});
  const std::int64_t running = task_in(state::running, *x.tasks, w, {.key = "runs"});
  const auto ids =
      x.tasks->submit_all(std::vector<planned>{{.what = {.key = "waits", .replace = true}, .when = 1h},
                                               {.what = {.key = "runs", .replace = true}, .when = 1h},
                                               {.what = {.key = "new", .replace = true}, .when = 1h}});
  CHECK_FALSE(x.tasks->find(waiting));
  CHECK(x.tasks->find(ids[0])->key == "waits");
  CHECK(x.tasks->find(running)->key.empty());
  CHECK(x.tasks->find(ids[1])->key == "runs");
  CHECK(x.rows() == 4);
}

TEST_CASE("a list that is refused has not replaced anything") {
  in_use x;
  const std::int64_t old = x.tasks->submit_after(1h, {.payload = "old", .key = "replaced"});
  const std::int64_t other = x.tasks->submit_after(1h, {.key = "taken"});
  CHECK(taken_by(x, {{.what = {.key = "replaced", .replace = true}}, {.what = {.key = "taken"}}}) == other);
  CHECK(x.tasks->find(old)->payload == "old");
  CHECK(x.tasks->find(old)->key == "replaced");
}

TEST_CASE("a submission of a list that is not valid is named, and nothing is added") {
  in_use x;
  try {
    x.tasks->submit_all(std::vector<planned>{{}, {.what = {.queue = ""}}});
    FAIL("it was accepted");
  } catch (const std::invalid_argument& e) {
    CHECK(std::string(e.what()) == "rondo: the queue \"\" is empty (number 1 of the list)");
  }
  CHECK(x.rows() == 0);
}

}  // namespace durable_submit_all
