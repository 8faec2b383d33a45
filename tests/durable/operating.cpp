// What operators do with a store: pause queues, list tasks, run dead ones again. The same tests run for each engine.
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/database.hpp"

namespace durable_operating {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::listed;
using rondo::durable::task_state;

struct in_use {
  std::unique_ptr<database> db = new_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
  worker w{*db, "me", {.queues = {"default", "other"}, .window = 5s, .lease = 30s, .max_attempts = 3}};

  std::int64_t in(state s, const rondo::durable::submission& what = {}) {
    return task_in(s, *tasks, w, what);
  }
  std::vector<std::int64_t> ids(std::optional<task_state> only = {}, std::int64_t after = 0,
                                std::size_t limit = 100) {
    std::vector<std::int64_t> all;
    for (const listed& l : tasks->list("default", only, after, limit)) all.push_back(l.id);
    return all;
  }
};

using id_list = std::vector<std::int64_t>;

TEST_CASE("a paused queue is not claimed from until it is resumed; others are") {
  in_use x;
  CHECK_FALSE(x.tasks->paused("default"));
  x.tasks->pause("default");
  x.tasks->pause("default");
  CHECK(x.tasks->paused("default"));
  CHECK_FALSE(x.tasks->paused("other"));
  const auto paused = x.tasks->submit_after(0s, {});
  const auto other = x.tasks->submit_after(0s, {.queue = "other"});
  CHECK(ids_of(x.w.claim_up_to(10)) == id_list{other});
  CHECK(x.tasks->find(paused));
  x.tasks->resume("default");
  x.tasks->resume("default");
  CHECK_FALSE(x.tasks->paused("default"));
  CHECK(ids_of(x.w.claim_up_to(10)) == id_list{paused});
}

TEST_CASE("a task that was claimed before its queue was paused does not begin; it begins once resumed") {
  in_use x;
  x.tasks->submit_after(0s, {});
  const ticket t = ticket_of(x.w.claim_one());
  x.tasks->pause("default");
  const turn_result done = x.w.take({.begun = {t}});
  CHECK(done.begun.empty());
  CHECK(done.early == std::vector{t});
  CHECK(x.tasks->find(t.id)->attempt == 0);
  x.tasks->resume("default");
  CHECK(x.w.begin(t));
}

TEST_CASE(
    "runs in progress of a paused queue go on: their beginning is repeated, they are renewed, and they end") {
  in_use x;
  x.tasks->submit_after(0s, {});
  const ticket t = ticket_of(x.w.claim_one());
  REQUIRE(x.w.begin(t));
  x.tasks->pause("default");
  CHECK(x.w.begin(t));  // the answer was lost
  CHECK(x.tasks->find(t.id)->attempt == 1);
  CHECK(x.w.renew(t));
  CHECK(x.w.finish(t));
}

TEST_CASE("tasks of a paused queue whose lease has run out are claimed once it is resumed") {
  in_use x;
  const auto id = x.in(state::running);
  x.tasks->pause("default");
  x.db->pass(1h);
  CHECK(x.w.claim_up_to(10).empty());
  x.tasks->resume("default");
  CHECK(ids_of(x.w.claim_up_to(10)) == id_list{id});
}

TEST_CASE("a pause outlives the store, and binds every dispatcher") {
  in_use x;
  x.tasks->pause("default");
  x.tasks.reset();
  x.tasks = x.db->open_store();
  CHECK(x.tasks->paused("default"));
  x.tasks->submit_after(0s, {});
  CHECK(worker(*x.db, "another").claim_up_to(1).empty());
}

TEST_CASE("tasks are listed by queue in the order of their ids, with what is known about each") {
  in_use x;
  const auto dead = x.in(state::dead, {.payload = std::string(1000, 'd'), .key = "k"});
  const auto held = x.in(state::held, {.payload = "h"});
  x.w.take({.returned = {}});
  const auto waiting = x.tasks->submit_after(1h, {.key = "w"});
  x.tasks->submit_after(1h, {.queue = "elsewhere"});
  const auto all = x.tasks->list("default");
  REQUIRE(all.size() == 3);
  CHECK(all[0].id == dead);
  CHECK(all[0].state == task_state::dead);
  CHECK(all[0].payload == std::string(1000, 'd'));
  CHECK(all[0].key == "k");
  CHECK(all[0].attempt == 1);
  CHECK(all[0].reason == "no use");
  CHECK(all[0].owner.empty());
  CHECK(all[1].id == held);
  CHECK(all[1].state == task_state::held);
  CHECK(all[1].owner == "me");
  CHECK(all[1].reason.empty());
  CHECK(all[1].fence > 0);
  CHECK(all[2].id == waiting);
  CHECK(all[2].state == task_state::waiting);
  CHECK(all[2].queue == "default");
  CHECK(all[2].due == x.tasks->find(waiting)->due);
}

TEST_CASE("tasks in one state are listed") {
  in_use x;
  const auto dead = x.in(state::dead);
  const auto retried = x.in(state::retried);
  const auto running = x.in(state::running);
  const auto cancelled = x.in(state::cancelled_while_running);
  const auto held = x.in(state::held);
  const auto waiting = x.tasks->submit_after(1h, {});
  CHECK(x.ids() == id_list{dead, retried, running, cancelled, held, waiting});
  CHECK(x.ids(task_state::waiting) == id_list{retried, waiting});
  CHECK(x.ids(task_state::held) == id_list{held});
  CHECK(x.ids(task_state::running) == id_list{running, cancelled});
  CHECK(x.ids(task_state::dead) == id_list{dead});
}

TEST_CASE("a list goes on after an id, and has a limit") {
  in_use x;
  id_list all;
  for (int i = 0; i != 5; ++i) all.push_back(x.in(state::dead));
  for (const auto only : {std::optional<task_state>(), std::optional(task_state::dead)}) {
    CHECK(x.ids(only, 0, 2) == id_list{all[0], all[1]});
    CHECK(x.ids(only, all[1], 2) == id_list{all[2], all[3]});
    CHECK(x.ids(only, all[3], 2) == id_list{all[4]});
    CHECK(x.ids(only, all[4], 2).empty());
    CHECK(x.ids(only, INT64_MAX, 2).empty());
    CHECK(x.ids(only, -5, SIZE_MAX) == all);
    CHECK(x.ids(only, 0, 0).empty());
  }
}

TEST_CASE("an unknown state is refused, with its number") {
  in_use x;
  CHECK_THROWS_WITH_AS(x.ids(static_cast<task_state>(9)), "rondo: there is no task_state 9",
                       std::invalid_argument);
}

TEST_CASE("a dead task that is retried waits again, is due now, and has all its attempts") {
  in_use x;
  const auto id = x.in(state::dead, {.payload = "p", .key = "k"});
  CHECK_FALSE(x.tasks->find(id));
  CHECK(x.tasks->retry(id));
  const auto found = x.tasks->find("default", "k");
  REQUIRE(found);
  CHECK(found->id == id);
  CHECK(found->attempt == 0);
  CHECK(found->payload == "p");
  CHECK(x.tasks->list("default").at(0).reason.empty());
  const ticket t = ticket_of(x.w.claim_one());
  CHECK(t.fence > 1);
  CHECK(x.w.begin(t));
  CHECK_FALSE(x.tasks->retry(id));
}

TEST_CASE("a task that is not dead, or never existed, is not retried") {
  for (const state s : {state::waiting, state::held, state::running, state::retried, state::done,
                        state::cancelled_while_running}) {
    in_use x;
    CHECK_FALSE(x.tasks->retry(x.in(s)));
  }
  in_use x;
  for (const std::int64_t id : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX})
    CHECK_FALSE(x.tasks->retry(id));
}

TEST_CASE("a dead task whose key a live one has got is not retried") {
  in_use x;
  const auto dead = x.in(state::dead, {.key = "k"});
  const auto live = x.tasks->submit_after(1h, {.key = "k"});
  try {
    x.tasks->retry(dead);
    FAIL("it was retried");
  } catch (const key_taken& e) {
    CHECK(e.id() == live);
  }
  CHECK(x.ids(task_state::dead) == id_list{dead});
}

TEST_CASE("a queue that no task can have is refused") {
  in_use x;
  CHECK_THROWS_AS(x.tasks->pause(""), std::invalid_argument);
  CHECK_THROWS_AS(x.tasks->resume("a\xff"), std::invalid_argument);
  CHECK_THROWS_AS(x.tasks->paused(std::string(256, 'q')), std::invalid_argument);
  CHECK_THROWS_AS(x.tasks->list(""), std::invalid_argument);
}

}  // namespace durable_operating
