// The cache: for each key the value that readers get, and its state. The refresher puts values in, readers take them
// out; the cache itself loads nothing. A key is the number of a row, counted from 0.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <rondo/time.hpp>

#include "origin.hpp"

namespace cache_refresh {

using key_number = std::size_t;

// What a reader gets. No value: the key was never loaded.
struct served {
  std::shared_ptr<const record> value;
  bool stale = false;  // past its time to live
};

struct key_counts {
  std::size_t fresh = 0;
  std::size_t stale = 0;
  std::size_t empty = 0;   // never loaded; fresh + stale + empty = all keys
  std::size_t failed = 0;  // of all those, the keys whose last load failed
};

class cache {
 public:
  explicit cache(std::size_t keys) : entries_(keys) {}

  std::size_t size() const noexcept { return entries_.size(); }

  served find(key_number, rondo::time_point now) const;

  // Waits until the key has been loaded for the first time, but no longer than `patience`.
  served await_first(key_number, rondo::duration patience);

  // False if a load of this key is in progress: then the caller must not start another one.
  bool begin_load(key_number);
  // The two ways in which a load ends.
  void store(key_number, record, rondo::time_point expires);
  unsigned note_failure(key_number);  // returns how many loads in a row have failed

  key_counts count(rondo::time_point now) const;

 private:
  struct entry {
    mutable std::mutex lock;
    std::condition_variable loaded;
    std::shared_ptr<const record> value;
    rondo::time_point expires;
    unsigned failures = 0;
    bool loading = false;
  };

  std::vector<entry> entries_;  // their number does not change
};

}  // namespace cache_refresh
