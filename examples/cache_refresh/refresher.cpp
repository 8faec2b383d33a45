#include "refresher.hpp"

#include <exception>
#include <utility>

#include <rondo/errors.hpp>

namespace cache_refresh {
namespace {

rondo::options run_on(worker_pool& pool) {
  rondo::options chosen;
  chosen.run_on = [&pool](rondo::job job) { pool.submit(std::move(job)); };
  chosen.name = "refresh";
  return chosen;
}

constexpr policy::seconds first_loads_within{1.0};

}  // namespace

refresher::refresher(refresher_options options, const std::vector<row>& rows, cache& cache, metrics& metrics)
    : options_(std::move(options)),
      rows_(rows),
      cache_(cache),
      metrics_(metrics),
      asked_first_(rows.size()),
      pool_(options_.workers),
      timer_(run_on(pool_)) {
  random_source random(options_.seed);
  first_loads_.reserve(rows.size());
  for (key_number key = 0; key < rows.size(); ++key) {
    const auto delay = policy::uniform(policy::seconds(0), first_loads_within, random);
    first_loads_.push_back(schedule(key, delay));
  }
}

void refresher::load_first(key_number key) {
  if (!asked_first_[key].test_and_set()) timer_.reschedule_after(first_loads_[key], rondo::duration::zero());
}

rondo::timer_id refresher::schedule(key_number key, policy::seconds delay) {
  return timer_.schedule_after(delay, [this, key](const rondo::firing& now) { refresh(key, now); });
}

void refresher::refresh(key_number key, const rondo::firing& firing) {
  metrics_.lateness.record(firing.lateness);
  const policy::seconds next = load(key);
  try {
    schedule(key, next);
  } catch (const rondo::stopped_error&) {
    // The program is ending: there is no next load.
  }
}

policy::seconds refresher::load(key_number key) {
  random_source& random = own_random();
  if (!cache_.begin_load(key)) ++metrics_.loads_at_once;
  try {
    if (random() % 100 < options_.fail_percent) throw sqlite::error("injected");
    const rondo::time_point asked_at = rondo::scheduler::clock::now();
    record loaded = own_connection().load(rows_[key].id);
    const auto ttl = loaded.ttl;
    cache_.store(key, std::move(loaded), asked_at + ttl);
    ++metrics_.loads;
    return policy::refresh_delay(ttl, random);
  } catch (const std::exception&) {
    // Whatever the error, the key is retried; the cache serves the old value meanwhile.
    ++metrics_.failed_loads;
    return policy::retry_delay(cache_.note_failure(key), random);
  }
}

origin_reader& refresher::own_connection() {
  thread_local origin_reader own(options_.database);
  return own;
}

random_source& refresher::own_random() {
  thread_local random_source own(options_.seed + ++random_sources_);
  return own;
}

}  // namespace cache_refresh
