// The refresher keeps the cache fresh ahead of time, with one Rondo timer.
//
// Each key has either one timer pending or one load running: at its end a load schedules the key's next one. So there
// are no two loads of a key at once, and no key is forgotten.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <rondo/timer.hpp>

#include "cache.hpp"
#include "metrics.hpp"
#include "origin.hpp"
#include "refresh_policy.hpp"
#include "worker_pool.hpp"

namespace cache_refresh {

struct refresher_options {
  std::filesystem::path database;
  std::size_t workers = 1;
  unsigned fail_percent = 0;  // of the loads, which fail as if the origin had not answered
  std::uint64_t seed = 0;
};

class refresher {
 public:
  // Row `rows[k]` is key k of the cache. The first load of every key comes within a second.
  refresher(refresher_options, const std::vector<row>& rows, cache&, metrics&);

  // A reader found no value for the key: starts its first load now.
  void load_first(key_number);

  // After it no load is running, and none starts.
  void stop() { timer_.stop(); }

  rondo::statistics timer_statistics() const { return timer_.stats(); }

 private:
  rondo::timer_id schedule(key_number, policy::seconds delay);
  void refresh(key_number, const rondo::firing&);
  policy::seconds load(key_number);  // returns the time until the next load

  // One of each for each thread of the pool, as neither may be shared.
  origin_reader& own_connection();
  random_source& own_random();

  const refresher_options options_;
  const std::vector<row>& rows_;
  cache& cache_;
  metrics& metrics_;
  std::vector<std::atomic_flag> asked_first_;
  std::vector<rondo::timer_id> first_loads_;
  std::atomic<std::uint64_t> random_sources_{0};
  worker_pool pool_;  // outlives the timer, which hands jobs to it
  rondo::timer timer_;
};

}  // namespace cache_refresh
