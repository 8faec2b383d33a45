// What a session held is free as soon as others can see that the session has ended. The same tests run for each engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "durable/database.hpp"

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
