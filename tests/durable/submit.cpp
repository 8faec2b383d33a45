// Submissions, alone and in lists, and their payloads. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "durable/database.hpp"

// Submissions, their keys, and what find() returns for them.
namespace durable_submit {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::submission;
using rondo::durable::task;
using rondo::durable::wall_time;

std::string all_bytes() {
  std::string result;
  for (int byte = 0; byte < 256; ++byte) result += static_cast<char>(byte);
  return result;
}

std::string refusal(rondo::durable::store& store, const submission& what) {
  try {
    store.submit_after(0s, what);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST_CASE("a submitted task is found as it was submitted") {
  const auto db = new_database();
  const auto store = db->open_store();
  const std::int64_t id = store->submit_after(90s, {.queue = "mail", .payload = "hello", .key = "order 7"});
  CHECK(id > 0);
  const auto found = store->find(id);
  REQUIRE(found);
  CHECK(found->id == id);
  CHECK(found->queue == "mail");
  CHECK(found->payload == "hello");
  CHECK(found->key == "order 7");
  CHECK(found->attempt == 0);
}

TEST_CASE("a submission with defaults is in the queue `default`, without key and payload") {
  const auto db = new_database();
  const auto store = db->open_store();
  const auto found = store->find(store->submit_after(1h, {}));
  REQUIRE(found);
  CHECK(found->queue == "default");
  CHECK(found->key.empty());
  CHECK(found->payload.empty());
}

TEST_CASE("a delay counts from the engine's now, rounded up to microseconds") {
  const auto db = new_database();
  const auto store = db->open_store();
  const wall_time before = db->now();
  const auto found = store->find(store->submit_after(90s + 1ns, {}));
  const wall_time after = db->now();
  REQUIRE(found);
  CHECK(found->due >= before + 90s + 1ns);
  CHECK(found->due <= after + 90s + 2us);
}

TEST_CASE("a time of the wall clock is kept, rounded up to microseconds") {
  const auto db = new_database();
  const auto store = db->open_store();
  const wall_time due = db->now() + 1h;
  const auto whole = std::chrono::ceil<std::chrono::microseconds>(due);
  CHECK(store->find(store->submit_at(whole, {}))->due == whole);
  CHECK(store->find(store->submit_at(whole - 1ns, {}))->due == whole);
  CHECK(store->find(store->submit_at(whole - 999ns, {}))->due == whole);
  CHECK(store->find(store->submit_at(whole - 1us, {}))->due == whole - 1us);
}

template <class Duration>
using wall_point = std::chrono::time_point<std::chrono::system_clock, Duration>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// Whether each call and each member that takes a time of the wall clock takes a T.
template <class T>
concept taken_everywhere = requires(rondo::durable::store& s, rondo::durable::transaction in, T due,
                                    const std::string& name) {
  s.submit_at(due, {});
  s.submit_at(in, due, {});
  s.reschedule_at(1, due);
  s.reschedule_at(in, 1, due);
  s.reschedule_at(name, name, due);
  s.reschedule_at(in, name, name, due);
  rondo::durable::planned{.when = rondo::any_wall_time(due)};
};
static_assert(taken_everywhere<wall_time>);
static_assert(taken_everywhere<std::chrono::system_clock::time_point>);
static_assert(taken_everywhere<std::chrono::sys_days>);
static_assert(taken_everywhere<wall_point<picoseconds>>);
static_assert(taken_everywhere<wall_point<std::chrono::duration<double>>>);
static_assert(!taken_everywhere<rondo::time_point>);
static_assert(std::is_same_v<wall_time, rondo::wall_time>);

TEST_CASE("a due time may be finer or coarser than the clock, and is never rounded down") {
  const auto db = new_database();
  const auto store = db->open_store();
  const auto second = std::chrono::ceil<std::chrono::seconds>(db->now() + 1h);
  const auto finer = [&](std::int64_t more) {
    return wall_point<picoseconds>(picoseconds(more) + std::chrono::seconds(1'000'000));
  };
  const wall_time fine(std::chrono::seconds(1'000'000));
  const auto due = [&](std::int64_t id) { return store->find(id)->due; };
  CHECK(due(store->submit_at(second, {})) == second);
  CHECK(due(store->submit_at(finer(0), {})) == fine);
  CHECK(due(store->submit_at(finer(1), {})) == fine + 1us);
  CHECK(due(store->submit_at(finer(-1), {})) == fine);
  CHECK(due(store->submit_at(finer(-1'000'001), {})) == fine - 1us);
  const std::vector<rondo::durable::planned> list{{.when = second}, {.when = rondo::any_wall_time(finer(1))}};
  const auto ids = store->submit_all(list);
  CHECK(due(ids.at(0)) == second);
  CHECK(due(ids.at(1)) == fine + 1us);
  CHECK(store->reschedule_at(ids.at(0), finer(1)));
  CHECK(due(ids.at(0)) == fine + 1us);
  const std::int64_t named = store->submit_at(wall_time(-1ns), {.key = "k"});
  CHECK(due(named) == wall_time());
  CHECK(store->reschedule_at("default", "k", finer(1)));
  CHECK(due(named) == fine + 1us);
  CHECK(store->reschedule_at("default", "k", std::chrono::sys_days::max()));
  CHECK(due(named) >= wall_time::max() - 1us);
  const std::chrono::duration<double> nan{std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_AS(store->submit_at(wall_point<std::chrono::duration<double>>(nan), {}),
                  std::invalid_argument);
}

TEST_CASE("the limits of the wall clock and of durations are kept, to the microsecond") {
  const auto db = new_database();
  const auto store = db->open_store();
  CHECK(store->find(store->submit_at(wall_time::max(), {}))->due >= wall_time::max() - 1us);
  CHECK(store->find(store->submit_at(wall_time::min(), {}))->due <= wall_time::min() + 1us);
  CHECK(store->find(store->submit_after(std::chrono::hours::max(), {}))->due >= wall_time::max() - 1us);
  worker w(*db);
  CHECK(w.claim_up_to(10).size() == 1);
}

TEST_CASE("a task due at once can be claimed at once: with a zero or negative delay, or a past time") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  CHECK(w.claim_up_to(10).empty());
  store->submit_after(0s, {});
  CHECK(w.claim_one().remaining <= 0s);
  store->submit_after(-1h, {});
  CHECK(w.claim_one().remaining <= 0s);
  store->submit_after(rondo::duration::min(), {});
  CHECK(w.claim_one().remaining <= 0s);
  store->submit_at(db->now() - 1h, {});
  CHECK(w.claim_one().remaining <= -1h);
}

TEST_CASE("a negative delay is zero: the due time is not before the submission") {
  const auto db = new_database();
  const auto store = db->open_store();
  const wall_time before = db->now();
  CHECK(store->find(store->submit_after(-1h, {}))->due >= before);
}

TEST_CASE("a NaN as a delay is refused") {
  const auto db = new_database();
  const auto store = db->open_store();
  CHECK_THROWS_AS(store->submit_after(std::chrono::duration<double>(std::nan("")), {}),
                  std::invalid_argument);
}

TEST_CASE("a payload keeps all bytes, including zero bytes") {
  const auto db = new_database();
  const auto store = db->open_store();
  CHECK(store->find(store->submit_after(1h, {.payload = all_bytes()}))->payload == all_bytes());
  CHECK(store->find(store->submit_after(1h, {.payload = std::string(3, '\0')}))->payload ==
        std::string(3, '\0'));
}

TEST_CASE("a payload of some megabytes is kept, found and claimed") {
  const auto db = new_database();
  const auto store = db->open_store();
  std::string large;
  while (large.size() < 5'000'000) large += all_bytes();
  const std::int64_t id = store->submit_after(0s, {.payload = large});
  CHECK((store->find(id)->payload == large));
  worker w(*db);
  CHECK((w.claim_one().what.payload == large));
}

TEST_CASE("queues and keys are any UTF-8 of up to 255 bytes") {
  const auto db = new_database();
  const auto store = db->open_store();
  for (const std::string& name : {std::string(255, 'x'), std::string("Grüße, 世界 😀"),
                                  std::string("'; DROP TABLE rondo_task; --\n\t\"%s\\"), std::string("\x7f"),
                                  std::string("\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80")}) {
    const std::int64_t id = store->submit_after(1h, {.queue = name, .key = name});
    CHECK(store->find(id)->queue == name);
    CHECK(store->find(id)->key == name);
    CHECK(store->cancel(name, name));
  }
}

TEST_CASE("invalid queues, keys and payloads are refused, and the message contains the value") {
  const auto db = new_database();
  const auto store = db->open_store();
  CHECK(refusal(*store, {.queue = ""}) == "rondo: the queue \"\" is empty");
  CHECK(refusal(*store, {.queue = std::string(256, 'q')}) ==
        "rondo: the queue \"" + std::string(80, 'q') + "...\" has 256 bytes; at most 255 are allowed");
  CHECK(refusal(*store, {.key = std::string(256, 'k')}) ==
        "rondo: the key \"" + std::string(80, 'k') + "...\" has 256 bytes; at most 255 are allowed");
  CHECK(refusal(*store, {.queue = std::string("a\0b", 3)}) ==
        "rondo: the queue \"a\\x00b\" contains a zero byte");
  CHECK(refusal(*store, {.key = std::string("\0", 1)}) == "rondo: the key \"\\x00\" contains a zero byte");
  CHECK(refusal(*store, {.queue = "a\xff"}) == "rondo: the queue \"a\\xff\" is not UTF-8");
  CHECK(refusal(*store, {.payload = std::string((64U << 20U) + 1, 'p')}) ==
        "rondo: the payload has 67108865 bytes; at most 67108864 (64 MiB) are allowed");
  CHECK(db->rows().empty());
}

TEST_CASE("text that only resembles UTF-8 is refused") {
  const auto db = new_database();
  const auto store = db->open_store();
  for (const char* key : {"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82", "\xf0\x80\x80\xaf", "\xf0\x9f\x98",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "good\xe2\x82"}) {
    CAPTURE(key);
    CHECK(refusal(*store, {.key = key}).find("is not UTF-8") != std::string::npos);
  }
}

TEST_CASE("a submission with the key of a live task of the queue is refused, and the error names that task") {
  const auto db = new_database();
  const auto store = db->open_store();
  const std::int64_t first = store->submit_after(1h, {.payload = "first", .key = "k"});
  try {
    store->submit_after(1h, {.payload = "second", .key = "k"});
    FAIL("it was accepted");
  } catch (const key_taken& e) {
    CHECK(e.id() == first);
    CHECK(std::string(e.what()) ==
          "rondo: task " + std::to_string(first) + " of the queue \"default\" has the key \"k\"");
  }
  CHECK(store->find(first)->payload == "first");
  CHECK(db->rows().size() == 1);
}

TEST_CASE("the same key in another queue, another key, and no key do not conflict") {
  const auto db = new_database();
  const auto store = db->open_store();
  store->submit_after(1h, {.key = "k"});
  CHECK_NOTHROW(store->submit_after(1h, {.queue = "other", .key = "k"}));
  CHECK_NOTHROW(store->submit_after(1h, {.key = "K"}));
  CHECK_NOTHROW(store->submit_after(1h, {.key = "k "}));
  CHECK_NOTHROW(store->submit_after(1h, {}));
  CHECK_NOTHROW(store->submit_after(1h, {}));
}

TEST_CASE("a key is taken while its task waits, is held, runs, or waits to be tried again") {
  for (const state s : {state::waiting, state::held, state::running, state::retried}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.key = "k"});
    try {
      store->submit_after(1h, {.key = "k"});
      FAIL("it was accepted");
    } catch (const key_taken& e) {
      CHECK(e.id() == id);
    }
  }
}

TEST_CASE("a key is free when its task is dead, was cancelled while it ran, or is done") {
  for (const state s : {state::dead, state::cancelled_while_running, state::done}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.key = "k"});
    CHECK(store->submit_after(1h, {.key = "k"}) > id);
  }
}

TEST_CASE("a replacement removes a task whose run has not begun") {
  for (const state s : {state::waiting, state::held, state::retried}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t old = task_in(s, *store, w, {.key = "k"});
    const std::int64_t id = store->submit_after(0s, {.payload = "new", .key = "k", .replace = true});
    CHECK(id > old);
    CHECK(!store->find(old));
    CHECK(store->find(id)->key == "k");
    CHECK(db->rows().size() == 1);
    CHECK(w.claim_one().what.id == id);
  }
}

TEST_CASE("a replacement lets a run continue as the last one, and takes over the key") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  store->submit_after(0s, {.key = "k"});
  const ticket old = ticket_of(w.claim_one());
  CHECK(w.begin(old));
  const std::int64_t id = store->submit_after(1h, {.key = "k", .replace = true});
  CHECK(store->find(id)->key == "k");
  CHECK_THROWS_AS(store->submit_after(1h, {.key = "k"}), key_taken);
  CHECK(w.retry(old, 0s));
  CHECK(!store->find(old.id));
  CHECK(w.claim_up_to(10).empty());
}

TEST_CASE("a replacement is a plain submission if no task has the key, or if the key is empty") {
  const auto db = new_database();
  const auto store = db->open_store();
  const std::int64_t other = store->submit_after(1h, {.queue = "other", .key = "k"});
  const std::int64_t none = store->submit_after(1h, {});
  CHECK(store->submit_after(1h, {.key = "k", .replace = true}) > none);
  CHECK(store->submit_after(1h, {.replace = true}) > none);
  CHECK(store->find(other));
  CHECK(store->find(none));
}

TEST_CASE("an id is never used again, not even the last one after all tasks were removed") {
  const auto db = new_database();
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto store = db->open_store();
    const std::int64_t id = store->submit_after(1h, {});
    CHECK(id > last);
    last = id;
    CHECK(store->cancel(id));
    CHECK(db->rows().empty());
  }
}

TEST_CASE("a live task is found, even while it runs; one that is dead, done or never existed is not") {
  for (const state s : {state::waiting, state::held, state::running, state::retried,
                        state::cancelled_while_running, state::dead, state::done}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.payload = "p"});
    const auto found = store->find(id);
    CHECK(found.has_value() == (s != state::dead && s != state::done));
    if (!found) continue;
    CHECK(found->payload == "p");
    CHECK(found->attempt == (s == state::waiting || s == state::held ? 0 : 1));
    CHECK((found->fence > 0) == (s != state::waiting));
  }
  const auto db = new_database();
  const auto store = db->open_store();
  for (const std::int64_t id : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    CHECK(!store->find(id));
  }
}

}  // namespace durable_submit

// Lists of submissions: all or none.
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

// Payloads, short and long ones.
namespace durable_payloads {

using namespace durable_test;
using rondo::durable::detail::longest_inline_payload;

std::string bytes(std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i != count; ++i) result += static_cast<char>(i % 251);
  return result;
}

TEST_CASE("a payload of any length is found, claimed and adopted as it was submitted") {
  for (const std::size_t size :
       {std::size_t{0}, longest_inline_payload, longest_inline_payload + 1, std::size_t{1'000'000}}) {
    CAPTURE(size);
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = store->submit_after(0s, {.payload = bytes(size)});
    CHECK((store->find(id)->payload == bytes(size)));
    CHECK((w.claim_one().what.payload == bytes(size)));
    const std::vector<claim> adopted = w.take({.adopt = true}).claimed;
    REQUIRE(adopted.size() == 1);
    CHECK((adopted[0].what.payload == bytes(size)));
  }
}

TEST_CASE("a claim is limited by the bytes of payloads that lie apart, too") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  for (int i = 0; i != 5; ++i) store->submit_after(0s, {.payload = bytes(1000)});
  CHECK(w.take({.claim_up_to = 5, .claim_bytes = 2001}).claimed.size() == 3);
}

}  // namespace durable_payloads
