// What a session claims, and what becomes of it when the session ends. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/database.hpp"

// Which tasks a session claims, and how.
namespace durable_claims {

using namespace durable_test;
using ids = std::vector<std::int64_t>;

claim_rules rules_with(std::vector<std::string> queues, rondo::duration window = 5min) {
  return {.queues = std::move(queues), .window = window, .lease = 30s, .max_attempts = 3};
}

TEST_CASE("a claim returns the complete task, and the time until it is due") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db, "w", rules_with({"mail"}));
  const std::int64_t id =
      store->submit_after(3min, {.queue = "mail", .payload = std::string("a\0b", 3), .key = "k"});
  const claim c = w.claim_one();
  CHECK(c.what.id == id);
  CHECK(c.what.queue == "mail");
  CHECK(c.what.payload == std::string("a\0b", 3));
  CHECK(c.what.key == "k");
  CHECK(c.what.attempt == 0);
  CHECK(c.what.fence > 0);
  CHECK(c.what.due == store->find(id)->due);
  CHECK(c.remaining <= 3min + 1us);
  CHECK(c.remaining > 2min);
}

TEST_CASE("an overdue task has a negative time until it is due") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  store->submit_at(db->now() - 10min, {});
  const claim c = w.claim_one();
  CHECK(c.remaining <= -10min + 1us);
  CHECK(c.remaining > -11min);
}

TEST_CASE("tasks due within the window are claimed, and no others") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db, "w", rules_with({"default"}));
  const std::int64_t in_4 = store->submit_after(4min, {});
  const std::int64_t in_6 = store->submit_after(6min, {});
  store->submit_after(24h, {});
  CHECK(ids_of(w.claim_up_to(10)) == ids{in_4});
  CHECK(w.claim_up_to(10).empty());
  db->pass(2min);
  CHECK(ids_of(w.claim_up_to(10)) == ids{in_6});
}

TEST_CASE("a window may have any length") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker forever(*db, "w", rules_with({"default"}, rondo::duration::max()));
  const std::int64_t id = store->submit_after(std::chrono::hours(24 * 365 * 100), {});
  CHECK(ids_of(forever.claim_up_to(10)) == ids{id});
}

TEST_CASE("tasks are claimed in the order of their due times; if there are too many, the earliest ones") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db, "w", rules_with({"default"}));
  const std::int64_t third = store->submit_after(3min, {});
  const std::int64_t first = store->submit_at(db->now() - 1h, {});
  const std::int64_t fourth = store->submit_after(4min, {});
  const std::int64_t second = store->submit_after(0s, {});
  CHECK(w.claim_up_to(0).empty());
  CHECK(ids_of(w.claim_up_to(1)) == ids{first});
  CHECK(ids_of(w.claim_up_to(2)) == ids{second, third});
  CHECK(ids_of(w.claim_up_to(2)) == ids{fourth});
  CHECK(w.claim_up_to(2).empty());
}

TEST_CASE("tasks of several queues are claimed together, in the order of their due times") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db, "w", rules_with({"a", "b", "c"}));
  ids expected;
  for (int minute = 0; minute < 4; ++minute) {
    for (const char* queue : {"b", "c", "a"}) {
      expected.push_back(store->submit_at(db->now() + minute * 1min + static_cast<int>(expected.size()) * 1s,
                                          {.queue = queue}));
    }
  }
  store->submit_after(0s, {.queue = "d"});
  const ids first = ids_of(w.claim_up_to(5));
  const ids rest = ids_of(w.claim_up_to(100));
  CHECK(first == ids(expected.begin(), expected.begin() + 5));
  CHECK(rest == ids(expected.begin() + 5, expected.end()));
}

TEST_CASE("a session gets only the tasks of its queues") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker of_a(*db, "a", rules_with({"a"}));
  worker of_b(*db, "b", rules_with({"b"}));
  const std::int64_t a = store->submit_after(0s, {.queue = "a"});
  const std::int64_t b = store->submit_after(0s, {.queue = "b"});
  store->submit_after(0s, {.queue = "A"});
  CHECK(ids_of(of_b.claim_up_to(10)) == ids{b});
  CHECK(ids_of(of_a.claim_up_to(10)) == ids{a});
}

TEST_CASE("a queue may be named twice, or may never have had a task") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db, "w", rules_with({"a", "empty", "a"}));
  const std::int64_t first = store->submit_at(db->now() - 1min, {.queue = "a"});
  const std::int64_t second = store->submit_after(0s, {.queue = "a"});
  CHECK(ids_of(w.claim_up_to(2)) == ids{first, second});
  CHECK(w.claim_up_to(10).empty());
  CHECK(w.take({.adopt = true}).claimed.size() == 2);
}

TEST_CASE("no other session gets what one session has claimed") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one"), other(*db, "other");
  ids expected;
  for (int i = 0; i < 10; ++i) expected.push_back(store->submit_after(0s, {}));
  ids got = ids_of(one.claim_up_to(4));
  CHECK(got.size() == 4);
  const ids second = ids_of(other.claim_up_to(100));
  got.insert(got.end(), second.begin(), second.end());
  std::ranges::sort(got);
  CHECK(got == expected);
  CHECK(one.claim_up_to(10).empty());
  CHECK(other.claim_up_to(10).empty());
}

TEST_CASE("a lease is counted from the due time of a task that is not due yet") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one", rules_with({"default"})), other(*db, "other", rules_with({"default"}));
  const std::int64_t id = store->submit_after(4min, {});
  const ticket t = ticket_of(one.claim_one());
  db->pass(4min + 15s);
  CHECK(other.claim_up_to(10).empty());
  db->pass(30s);
  const claim c = other.claim_one();
  CHECK(c.what.id == id);
  CHECK(c.what.fence > t.fence);
  CHECK(!one.begin(t));
  CHECK(other.begin(ticket_of(c)));
}

TEST_CASE("a lease is counted from the claim of a task that is overdue") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one"), other(*db, "other");
  store->submit_at(db->now() - 1h, {});
  one.claim_one();
  CHECK(other.claim_up_to(10).empty());
  db->pass(15s);
  CHECK(other.claim_up_to(10).empty());
  db->pass(30s);
  CHECK(other.claim_up_to(10).size() == 1);
}

TEST_CASE("a session can claim again a task whose lease it let run out") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  store->submit_after(0s, {});
  const ticket old = ticket_of(w.claim_one());
  db->pass(1min);
  const ticket t = ticket_of(w.claim_one());
  CHECK(t.id == old.id);
  CHECK(t.fence > old.fence);
  CHECK(!w.begin(old));
  CHECK(w.begin(t));
}

TEST_CASE("expired tasks and due tasks are claimed together, in the order of their due times") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one"), other(*db, "other");
  const std::int64_t held = store->submit_at(db->now() - 2h, {});
  one.claim_one();
  const std::int64_t run = store->submit_at(db->now() - 1h, {});
  CHECK(one.begin(ticket_of(one.claim_one())));
  db->pass(1min);
  const std::int64_t oldest = store->submit_at(db->now() - 3h, {});
  const std::int64_t newest = store->submit_at(db->now(), {});
  CHECK(ids_of(other.claim_up_to(1)) == ids{oldest});
  const std::vector<claim> claims = other.claim_up_to(10);
  CHECK(ids_of(claims) == ids{held, run, newest});
  CHECK(claims[0].what.attempt == 0);
  CHECK(claims[1].what.attempt == 1);
}

TEST_CASE("at most the limit of expired tasks is claimed, also from several queues") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one", rules_with({"a", "b"})), other(*db, "other", rules_with({"a", "b"}));
  for (int i = 0; i < 10; ++i) store->submit_after(0s, {.queue = i % 2 == 0 ? "a" : "b"});
  CHECK(one.claim_up_to(10).size() == 10);
  db->pass(1min);
  CHECK(other.claim_up_to(3).size() == 3);
  CHECK(other.claim_up_to(100).size() == 7);
}

TEST_CASE("a session adopts what it has claimed but not begun if the answer was lost") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one"), other(*db, "other");
  for (int i = 0; i < 4; ++i) store->submit_at(db->now() - (4 - i) * 1min, {.payload = std::to_string(i)});
  const std::vector<claim> claims = one.claim_up_to(3);
  CHECK(one.begin(ticket_of(claims[0])));
  other.claim_one();
  std::vector<claim> again = one.take({.adopt = true}).claimed;
  std::ranges::sort(again, {}, [](const claim& c) { return c.what.id; });
  REQUIRE(ids_of(again) == ids{claims[1].what.id, claims[2].what.id});
  CHECK(again[0].what.payload == "1");
  CHECK(again[0].what.fence == claims[1].what.fence);
  CHECK(again[0].remaining <= -3min);
  for (const claim& c : again) CHECK(one.begin(ticket_of(c)));
  CHECK(one.take({.adopt = true}).claimed.empty());
}

TEST_CASE("an adopted task is not claimed again in the same turn, even if its lease has run out") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  const std::int64_t first = store->submit_after(0s, {});
  w.claim_one();
  db->pass(1min);
  const std::int64_t second = store->submit_after(0s, {});
  const std::vector<claim> claims = w.take({.adopt = true, .claim_up_to = 10}).claimed;
  CHECK(ids_of(claims) == ids{first, second});
  for (const claim& c : claims) CHECK(w.begin(ticket_of(c)));
}

TEST_CASE("a task that another session took over, or that was cancelled or moved, is not adopted") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker one(*db, "one"), other(*db, "other");
  for (int i = 0; i < 3; ++i) store->submit_after(0s, {});
  CHECK(one.claim_up_to(3).size() == 3);
  CHECK(store->cancel(1));
  CHECK(store->reschedule_after(2, 1h));
  db->pass(1min);
  CHECK(other.claim_one().what.id == 3);
  CHECK(one.take({.adopt = true}).claimed.empty());
}

TEST_CASE("the largest claim takes all that there is") {
  const auto db = new_database();
  const auto tasks = db->open_store();
  for (int i = 0; i != 3; ++i) tasks->submit_after(0s, {});
  worker w(*db);
  CHECK(w.claim_up_to(static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())).size() == 3);
}

TEST_CASE("a claim ends with the task whose payload reaches the number of bytes, and takes at least one") {
  const auto db = new_database();
  const auto tasks = db->open_store();
  std::vector<std::int64_t> submitted;
  for (const std::size_t size : {5000U, 4000U, 3000U, 0U, 1U})
    submitted.push_back(tasks->submit_after(-1s, {.payload = std::string(size, 'x')}));
  const auto claimed_by = [&](std::size_t count, std::size_t bytes) {
    worker w(*db);
    ids claimed;
    for (const claim& c : w.take({.claim_up_to = count, .claim_bytes = bytes}).claimed) {
      claimed.push_back(c.what.id);
      w.take({.returned = {{c.what.id, c.what.fence}}});
    }
    std::sort(claimed.begin(), claimed.end());
    return claimed;
  };
  const auto first = [&](int n) { return ids(submitted.begin(), submitted.begin() + n); };
  CHECK(claimed_by(10, 1) == first(1));
  CHECK(claimed_by(10, 5000) == first(1));
  CHECK(claimed_by(10, 5001) == first(2));
  CHECK(claimed_by(10, 12000) == first(3));
  CHECK(claimed_by(10, 12001) == first(5));
  CHECK(claimed_by(2, 12001) == first(2));
  CHECK(claimed_by(10, rondo::unlimited) == first(5));
}

}  // namespace durable_claims

// What a session held is free as soon as others can see that the session has ended.
namespace durable_owners {

using namespace durable_test;
using ids = std::vector<std::int64_t>;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker other{*db, "other"};
  std::optional<worker> lost;

  in_use() { lost.emplace(*db, "lost"); }

  /// A server needs a moment to see that a session has ended.
  bool sees_a_death() {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!other.session().changed() || std::ranges::count(db->owners(), "lost") != 0)
      if (std::chrono::steady_clock::now() >= end) return false;
    return true;
  }
};

TEST_CASE("owners: what a session held is claimed by others as soon as it has ended, with a greater fence") {
  in_use x;
  const auto due = x.tasks->submit_after(0s, {}), in_lane = x.tasks->submit_after(2s, {.lane = "a"});
  const auto held = x.lost->claim_up_to(10);
  CHECK(ids_of(held) == ids{due, in_lane});
  CHECK(x.other.claim_up_to(10).empty());
  x.lost.reset();
  CHECK(x.sees_a_death());
  const auto taken = x.other.claim_up_to(10);
  CHECK(ids_of(taken) == ids{due, in_lane});
  for (std::size_t i = 0; i != taken.size(); ++i) {
    CHECK(taken[i].what.fence > held[i].what.fence);
    CHECK(taken[i].what.attempt == 0);
  }
}

TEST_CASE("owners: a run that had begun is left to its lease") {
  in_use x;
  x.tasks->submit_after(0s, {});
  CHECK(x.lost->begin(ticket_of(x.lost->claim_one())));
  x.lost.reset();
  CHECK(x.sees_a_death());
  CHECK(x.other.claim_up_to(10).empty());
  x.db->pass(31s);
  CHECK(x.other.claim_up_to(10).size() == 1);
}

TEST_CASE("owners: a session that lives keeps what it holds, also if others look often") {
  in_use x;
  x.tasks->submit_after(0s, {});
  const ticket t = ticket_of(x.lost->claim_one());
  x.other.claim_up_to(1);
  x.other.session().changed();  // SQLite: what was submitted
  for (int i = 0; i != 5; ++i) CHECK_FALSE(x.other.session().changed());
  CHECK(x.db->owners().size() == 2);
  CHECK(x.other.claim_up_to(10).empty());
  CHECK(x.lost->begin(t));
}

TEST_CASE("owners: a session frees nothing of its own, and nobody's row stays for ever") {
  in_use x;
  x.tasks->submit_after(0s, {});
  const ticket t = ticket_of(x.other.claim_one());
  x.lost->claim_up_to(1);
  CHECK(x.db->owners().size() == 2);
  x.lost.reset();
  CHECK(x.sees_a_death());
  CHECK(x.db->owners() == std::vector<std::string>{"other"});
  CHECK(x.other.begin(t));
}

TEST_CASE("owners: a paused or moved task that was held stays so when its session ends") {
  in_use x;
  const auto moved = x.tasks->submit_after(0s, {}), paused = x.tasks->submit_after(0s, {});
  CHECK(x.lost->claim_up_to(10).size() == 2);
  CHECK(x.tasks->reschedule_after(moved, 1h));
  x.tasks->pause("default");
  x.lost.reset();
  CHECK(x.sees_a_death());
  CHECK(x.other.claim_up_to(10).empty());
  x.tasks->resume("default");
  CHECK(ids_of(x.other.claim_up_to(10)) == ids{paused});
}

}  // namespace durable_owners
