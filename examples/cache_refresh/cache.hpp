// The cache: for each key the value that readers get, and how it stands. It never asks for anything itself:
// values are put in by the refresher and taken out by readers. A key is the number of a row, counted from 0.
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

  // Waits until the key has been loaded for the first time, or until `patience` is at its end.
  served await_first(key_number, rondo::duration patience);

  // False if a load of this key is in progress: then there must not be another one.
  bool begin_load(key_number);
  // The two ways in which a load ends.
  void store(key_number, record, rondo::time_point expires);
  unsigned note_failure(key_number);  // how many loads in a row have failed now

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

  std::vector<entry> entries_;  // as many as at the start, for ever
};

}  // namespace cache_refresh
