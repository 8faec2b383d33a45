// Several threads on one database. The same tests run for SQLite and PostgreSQL; the simulated database has one thread.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "durable/sql_database.hpp"

namespace durable_threads {

using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::planned;
using rondo::durable::schedule;

struct in_use {
  std::unique_ptr<sql_database> db = new_sql_database();
  std::unique_ptr<rondo::durable::store> tasks = db->open_store();
};

TEST_CASE("interrupt() ends a wait, even if called before it") {
  in_use x;
  worker w(*x.db);
  w.session().interrupt();
  CHECK(!w.session().wait());
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    CHECK(!w.session().wait());
    ended = true;
  });
  // Enough time for a wait that the first interruption would end as well.
  for (int i = 0; i < 1000 && !ended; ++i) std::this_thread::sleep_for(20us);
  CHECK(!ended);
  w.session().interrupt();
  waiter.join();
}

TEST_CASE("threads that add lists with the same keys: one list is accepted, whole") {
  in_use x;
  std::vector<planned> all(50);
  for (std::size_t i = 0; i != all.size(); ++i) all[i] = {.what = {.key = std::to_string(i)}, .when = 1h};
  std::atomic<int> accepted{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i != 4; ++i)
    threads.emplace_back([&] {
      try {
        x.tasks->submit_all(all);
        ++accepted;
      } catch (const key_taken&) {
        ++refused;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(accepted == 1);
  CHECK(refused == 3);
  CHECK(x.db->rows().size() == 50);
}

TEST_CASE("threads that replace the same keys with lists all succeed, and each key has one task") {
  in_use x;
  std::vector<planned> all(20);
  for (std::size_t i = 0; i != all.size(); ++i)
    all[i] = {.what = {.key = std::to_string(i), .replace = true}, .when = 1h};
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i != 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round != 5; ++round) {
        x.tasks->submit_all(all);
        ++accepted;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(accepted == 15);
  CHECK(x.db->rows().size() == 20);
}

TEST_CASE("many nodes may declare the same at the same time") {
  in_use x;
  std::int64_t fence = 0;
  for (int round = 0; round != 5; ++round) {
    std::vector<std::thread> nodes;
    std::vector<std::int64_t> ids(4);
    for (auto& id : ids)
      nodes.emplace_back([&] {
        id = x.db->open_store()->repeat(
            {.key = "k", .payload = std::to_string(round), .when = schedule::every(1min)});
      });
    for (auto& n : nodes) n.join();
    const auto now = x.tasks->find("default", "k");
    REQUIRE(now);
    CHECK(ids == std::vector(4, now->id));
    CHECK(now->payload == std::to_string(round));
    CHECK(x.db->rows().size() == 1);
    if (round != 0) CHECK(now->fence == fence + 1);  // replaced once
    fence = now->fence;
  }
}

}  // namespace durable_threads
