// Cancelling and moving tasks, by id and by key. The same tests run for each engine.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "durable/database.hpp"

// Cancelling and moving tasks in each state.
namespace durable_cancel {

using namespace durable_test;

/// Cancels the task by id, or by queue and key.
bool cancel(rondo::durable::store& store, std::int64_t id, bool by_key) {
  return by_key ? store.cancel("default", "k") : store.cancel(id);
}

TEST_CASE("a task whose run has not begun is removed by cancel(), by id and by key") {
  for (const bool by_key : {false, true}) {
    for (const state s : {state::waiting, state::held, state::retried}) {
      const auto db = new_database();
      const auto store = db->open_store();
      worker w(*db);
      const std::int64_t id = task_in(s, *store, w, {.key = "k"});
      CHECK(cancel(*store, id, by_key));
      CHECK(!store->find(id));
      CHECK(db->rows().empty());
      db->pass(2h);
      CHECK(w.claim_up_to(10).empty());
      CHECK(!cancel(*store, id, by_key));
    }
  }
}

TEST_CASE("a claimed task that is cancelled does not begin") {
  for (const bool by_key : {false, true}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    store->submit_after(0s, {.key = "k"});
    const ticket t = ticket_of(w.claim_one());
    CHECK(cancel(*store, t.id, by_key));
    CHECK(!w.begin(t));
  }
}

TEST_CASE("a run that has begun continues when it is cancelled, and is the last run however it ends") {
  enum class end { finished, retried, given_up, unstarted, lost };
  for (const bool by_key : {false, true}) {
    for (const end how : {end::finished, end::retried, end::given_up, end::unstarted, end::lost}) {
      const auto db = new_database();
      const auto store = db->open_store();
      worker w(*db);
      store->submit_after(0s, {.key = "k"});
      const ticket t = ticket_of(w.claim_one());
      CHECK(w.begin(t));
      CHECK(!cancel(*store, t.id, by_key));
      CHECK(!cancel(*store, t.id, by_key));
      CHECK(store->find(t.id));
      CHECK(w.renew(t));
      if (how == end::finished) CHECK(w.finish(t));
      if (how == end::retried) CHECK(w.retry(t, 0s));
      if (how == end::given_up) CHECK(w.give_up(t, "no use"));
      if (how == end::unstarted) w.unstart(t);
      if (how == end::lost) db->pass(2h);
      CHECK(w.claim_up_to(10).empty());
      CHECK(!store->find(t.id));
      CHECK(db->rows().empty());
    }
  }
}

TEST_CASE("a run that has begun and is cancelled does not begin again") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  store->submit_after(0s, {});
  const ticket t = ticket_of(w.claim_one());
  CHECK(w.begin(t));
  CHECK(!store->cancel(t.id));
  CHECK(!w.begin(t));
}

TEST_CASE("a task that is dead, done or never existed cannot be cancelled") {
  for (const bool by_key : {false, true}) {
    for (const state s : {state::dead, state::done}) {
      const auto db = new_database();
      const auto store = db->open_store();
      worker w(*db);
      const std::int64_t id = task_in(s, *store, w, {.key = "k"});
      CHECK(!cancel(*store, id, by_key));
      CHECK(db->rows().size() == (s == state::dead ? 1 : 0));
    }
  }
  const auto db = new_database();
  const auto store = db->open_store();
  for (const std::int64_t id : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}, INT64_MAX, INT64_MIN})
    CHECK(!store->cancel(id));
}

TEST_CASE("cancelling by key cancels the task with the key in its queue, and no other task") {
  const auto db = new_database();
  const auto store = db->open_store();
  const std::int64_t elsewhere = store->submit_after(1h, {.queue = "other", .key = "k"});
  const std::int64_t other = store->submit_after(1h, {.key = "other"});
  const std::int64_t none = store->submit_after(1h, {});
  CHECK(!store->cancel("default", "k"));
  CHECK(!store->cancel("default", ""));
  CHECK(!store->cancel("nobody's", "k"));
  for (const std::int64_t id : {elsewhere, other, none}) CHECK(store->find(id));
  CHECK(store->cancel("other", "k"));
  CHECK(!store->find(elsewhere));
  CHECK(store->find(other));
}

TEST_CASE("after its task is dead, a key refers to the live task that has it now") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  const std::int64_t dead = task_in(state::dead, *store, w, {.key = "k"});
  const std::int64_t id = store->submit_after(1h, {.key = "k"});
  CHECK(store->cancel("default", "k"));
  CHECK(!store->find(id));
  REQUIRE(db->rows().size() == 1);
  CHECK(db->rows()[0].id == dead);
  CHECK(!store->cancel("default", "k"));
}

TEST_CASE("a queue or key that no task can have is refused by cancel()") {
  const auto db = new_database();
  const auto store = db->open_store();
  CHECK_THROWS_AS(store->cancel("", "k"), std::invalid_argument);
  CHECK_THROWS_AS(store->cancel("a\xff", "k"), std::invalid_argument);
  CHECK_THROWS_AS(store->cancel("default", std::string(256, 'k')), std::invalid_argument);
}

TEST_CASE("a task whose run has not begun is moved, and is claimed at its new time") {
  for (const state s : {state::waiting, state::held, state::retried}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w, {.payload = "p", .key = "k"});
    const int attempt = store->find(id)->attempt;
    const auto before = db->now();
    CHECK(store->reschedule_after(id, 3h));
    const auto found = store->find(id);
    REQUIRE(found);
    CHECK(found->due >= before + 3h);
    CHECK(found->due <= before + 3h + 1min);
    CHECK(found->payload == "p");
    CHECK(found->key == "k");
    CHECK(found->attempt == attempt);
    db->pass(2h);
    CHECK(w.claim_up_to(10).empty());
    db->pass(1h);
    CHECK(w.claim_one().what.id == id);
  }
}

TEST_CASE("a task is moved to a time of the wall clock, rounded up, and to an earlier time") {
  const auto db = new_database();
  const auto store = db->open_store();
  const std::int64_t id = store->submit_after(5h, {});
  const auto due = std::chrono::ceil<std::chrono::microseconds>(db->now() + 2h);
  CHECK(store->reschedule_at(id, due - 1ns));
  CHECK(store->find(id)->due == due);
  CHECK(store->reschedule_after(id, -1h));
  worker w(*db);
  CHECK(w.claim_one().remaining <= 0s);
}

TEST_CASE("a claimed task that is moved does not begin with the old claim") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  store->submit_after(0s, {});
  const ticket t = ticket_of(w.claim_one());
  CHECK(store->reschedule_after(t.id, 0s));
  CHECK(!w.begin(t));
  const ticket again = ticket_of(w.claim_one());
  CHECK(again.fence > t.fence);
  CHECK(!w.begin(t));
  CHECK(w.begin(again));
}

TEST_CASE("a task that is running, dead, done or never existed is not moved") {
  for (const state s : {state::running, state::cancelled_while_running, state::dead, state::done}) {
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = task_in(s, *store, w);
    CHECK(!store->reschedule_after(id, 1h));
    CHECK(!store->reschedule_at(id, db->now()));
    CHECK(w.claim_up_to(10).empty());
  }
  const auto db = new_database();
  const auto store = db->open_store();
  for (const std::int64_t id : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}, INT64_MAX, INT64_MIN})
    CHECK(!store->reschedule_after(id, 1h));
}

}  // namespace durable_cancel

// Tasks found and moved by their key.
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
