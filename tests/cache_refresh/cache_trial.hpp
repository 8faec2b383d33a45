// A cache on virtual time, with the test as its origin: loads in progress are in a list, and end when the test says so.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/manual_timer.hpp>

#include "refreshing_cache.hpp"
#include "scheduler/virtual_time.hpp"

namespace cache_refresh::test {

using namespace std::chrono_literals;
using rondo::test::at;
using rondo::test::journal;

// Without randomness, except for retries: a load every 90 s.
inline refresh_policy plain_policy() {
  refresh_policy policy;
  policy.soft_ttl = 100s;
  policy.hard_ttl = 1000s;
  policy.refresh_at = 0.9;
  policy.jitter = 0;
  policy.load_deadline = 10s;
  policy.first_retry = 1s;
  policy.longest_retry = 30s;
  return policy;
}

// With deadlines exact to the nanosecond.
inline rondo::options exact_ticks() {
  rondo::options options;
  options.tick = 1ns;
  return options;
}

inline std::string text(const lookup<int>& got) {
  if (!got.value) return got.waited ? "nothing, after waiting" : "nothing";
  return std::to_string(*got.value) + (got.stale ? " stale" : " fresh") +
         (got.waited ? ", after waiting" : "");
}

template <class Key = std::string, class Hash = std::hash<Key>>
class cache_trial {
 public:
  using cache_type = refreshing_cache<Key, int, Hash>;
  using load = typename cache_type::load;

  explicit cache_trial(refresh_policy policy = plain_policy(), rondo::options options = exact_ticks())
      : time(std::move(options)) {
    cache = std::make_unique<cache_type>(time, policy, [this](load begun) {
      begins.push_back({begun.key(), time.now()});
      if (origin) return origin(std::move(begun));
      loads.push_back(std::move(begun));
    });
  }

  // Removes the oldest load of the key from the list, and returns it.
  load take(const Key& key) {
    for (auto each = loads.begin(); each != loads.end(); ++each) {
      if (each->key() != key) continue;
      load found = std::move(*each);
      loads.erase(each);
      return found;
    }
    throw std::logic_error("the test takes a load that has not begun");
  }
  void store(const Key& key, int value, time_to_live ttl = {}) { take(key).store(value, ttl); }
  void fail(const Key& key) { take(key).fail(); }
  // Loads the key with this value now.
  void fill(const Key& key, int value, time_to_live ttl = {}) {
    cache->find(key);
    store(key, value, ttl);
  }
  // From now on each load ends at once: with this value, or in a failure.
  void answer_all(int value) {
    origin = [value](load begun) { begun.store(value); };
  }
  void fail_all() {
    origin = [](load begun) { begun.fail(); };
  }

  std::string read(const Key& key) { return text(cache->find(key)); }
  // Notes what the reader gets, when it gets it.
  void read_later(const Key& key, const std::string& name) {
    cache->find(key, [this, name](const lookup<int>& got) { notes.add(name + ": " + text(got) + ";"); });
  }
  void advance_to(rondo::time_point when) { time.advance(when - time.now()); }

  // When the next load of a key in the cache begins, unless one is in progress.
  std::optional<rondo::time_point> next_load(const Key& wanted) const {
    std::optional<rondo::time_point> when;
    cache->for_each([&](const Key& key, const cache_refresh::key_state& times) {
      if (key == wanted) when = times.next_load;
    });
    return when;
  }

  struct beginning {
    Key key;
    rondo::time_point when;
  };

  rondo::manual_timer time;
  std::vector<beginning> begins;
  std::list<load> loads;  // in progress
  std::function<void(load)> origin;
  journal notes;
  std::unique_ptr<cache_type> cache;
};

}  // namespace cache_refresh::test
