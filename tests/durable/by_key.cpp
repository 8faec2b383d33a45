// Tasks found and moved by their key. The same tests run for each engine.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "durable/database.hpp"

namespace durable_by_key {

using namespace durable_test;

TEST_CASE("a live task is found by its key, in its queue") {
  for (const state s : {state::waiting, state::held, state::running, state::retried}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.payload = std::string(1000, 'p'), .key = "k"});
    const auto found = store->find("default", "k");
    REQUIRE(found);
    CHECK(found->id == id);
    CHECK(found->payload == std::string(1000, 'p'));
    CHECK(found->attempt == store->find(id)->attempt);
    CHECK(found->fence == store->find(id)->fence);
    CHECK(found->due == store->find(id)->due);
    CHECK_FALSE(store->find("other", "k"));
    CHECK_FALSE(store->find("default", "K"));
  }
}

TEST_CASE("a task that is no longer live, or was cancelled during its run, is not found by its key") {
  for (const state s : {state::dead, state::cancelled_while_running, state::done}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    task_in(s, *store, w, {.key = "k"});
    CHECK_FALSE(store->find("default", "k"));
    CHECK_FALSE(store->reschedule_after("default", "k", 1h));
  }
}

TEST_CASE("a task whose run has not begun is moved by its key") {
  for (const state s : {state::waiting, state::held, state::retried}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.key = "k"});
    const auto before = db->now();
    CHECK(store->reschedule_after("default", "k", 3h));
    CHECK(store->find(id)->due >= before + 3h);
    CHECK(store->find(id)->due <= before + 3h + 1min);
    CHECK(w.claim_up_to(10).empty());
    const auto due = std::chrono::ceil<std::chrono::microseconds>(db->now() + 2h);
    CHECK(store->reschedule_at("default", "k", due - 1ns));
    CHECK(store->find(id)->due == due);
    CHECK(store->reschedule_after("default", "k", -1h));
    CHECK(w.claim_one().what.id == id);
  }
}

TEST_CASE("a running task is not moved by its key") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  task_in(state::running, *store, w, {.key = "k"});
  CHECK_FALSE(store->reschedule_after("default", "k", 1h));
  CHECK_FALSE(store->reschedule_at("default", "k", db->now()));
}

TEST_CASE("a claimed task that is moved by its key does not begin with the old claim") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  task_in(state::waiting, *store, w, {.key = "k"});
  const ticket t = ticket_of(w.claim_one());
  CHECK(store->reschedule_after("default", "k", 0s));
  CHECK_FALSE(w.begin(t));
  CHECK(w.begin(ticket_of(w.claim_one())));
}

TEST_CASE("no task has an empty key, and a queue or key that no task can have is refused") {
  const auto db = new_database();
  const auto store = db->open_store();
  store->submit_after(1h, {});
  CHECK_FALSE(store->find("default", ""));
  CHECK_FALSE(store->reschedule_after("default", "", 1h));
  CHECK_THROWS_AS(store->find("", "k"), std::invalid_argument);
  CHECK_THROWS_AS(store->reschedule_after("default", std::string(256, 'k'), 1h), std::invalid_argument);
  CHECK_THROWS_AS(store->reschedule_after("default", "k", std::chrono::duration<double>(std::nan(""))),
                  std::invalid_argument);
}

}  // namespace durable_by_key
