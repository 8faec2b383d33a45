// The listing of examples/cache_refresh/README.md.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rondo/timer.hpp>

#include "../../examples/cache_refresh/refreshing_cache.hpp"

namespace readme_cache_refresh {

using namespace std::chrono_literals;

struct user {
  std::string name;
};

user query(const std::string& key) { return {"the user " + key}; }

/// A thread for each job.
struct thread_pool {
  std::vector<std::thread> threads;
  template <class Job>
  void post(Job j) {
    threads.emplace_back(std::move(j));
  }
  ~thread_pool() {
    for (std::thread& t : threads) t.join();
  }
};

TEST_CASE("a cache that refreshes itself") {
  rondo::timer timer;
  thread_pool pool;

  cache_refresh::refreshing_cache<std::string, user> users(
      timer, {.soft_ttl = 1min, .hard_ttl = 1h},
      [&](auto load) { pool.post([load = std::move(load)]() mutable { load.store(query(load.key())); }); });
  auto found = users.wait_for("ada", 100ms);  // found.value, found.stale, found.age

  if (!found.value) found = users.wait_for("ada", 1min);  // the machine was busy
  REQUIRE(found.value);
  CHECK(found.value->name == "the user ada");
  CHECK_FALSE(found.stale);
}

}  // namespace readme_cache_refresh
