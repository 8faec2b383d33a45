// The users of a run: readers, a writer, and the ledger that shows how far behind the writer a reader's value was.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <rondo/time.hpp>

#include "loader.hpp"
#include "measured.hpp"
#include "origin.hpp"

namespace cache_refresh {

// The ledger records when each value that this program has replaced at the origin was superseded. It shows for every
// read how far behind the origin the value was.
//
// It errs on the safe side: the writer enters a change *before* committing it, so a value may count as superseded for
// longer than it was, by the duration of a commit. The ledger does not know of changes by others.
//
// Each change takes 16 bytes (140 MB a day at 100 per second). Nothing is discarded, because a failing origin may
// leave any old value in the cache.
class ledger {
 public:
  explicit ledger(std::size_t keys) : histories_(keys) {}

  // For the only writer. supersede(): the value with this validator is about to be replaced. settle(): it has been
  // replaced by the value with the validator `newest`. withdraw(): it has not been replaced after all.
  void supersede(std::size_t key, const std::string& validator, rondo::time_point at);
  void settle(std::size_t key, const std::string& newest);
  void withdraw(std::size_t key);

  // How long the value with this validator had been superseded at the given time; zero if it was current.
  rondo::duration behind(std::size_t key, const std::string& validator, rondo::time_point served_at) const;

 private:
  struct superseded {
    std::uint64_t value;  // the validator's hash
    rondo::time_point at;
  };

  struct history {
    std::vector<superseded> past;  // in order
    std::uint64_t newest = 0;      // 0 if not known, while it is being replaced
  };

  std::mutex& lock_of(std::size_t key) const { return locks_[key % locks_.size()]; }

  mutable std::array<std::mutex, 64> locks_;
  std::vector<history> histories_;
};

// Zipf's law: the k-th most popular of n is picked 1/k as often as the most popular one.
// Takes 8 bytes per element, and O(log n) time per pick. Threads may share it.
class zipf {
 public:
  // If `skewed` is false, all elements are equally likely.
  zipf(std::size_t n, bool skewed) : sums_(n) {
    double sum = 0;
    for (std::size_t rank = 0; rank < n; ++rank)
      sums_[rank] = sum += skewed ? 1.0 / static_cast<double>(rank + 1) : 1.0;
  }

  std::uint32_t pick(std::mt19937_64& random) const {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, at);
    return static_cast<std::uint32_t>(found - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

struct reader_options {
  std::size_t threads = 1;
  unsigned reads_per_second = 0;  // of all threads together
  rondo::duration patience = std::chrono::seconds(2);
  std::uint64_t seed = 0;
};

// Threads that read through the cache and record how good the values were.
class readers {
 public:
  readers(const reader_options&, const zipf&, record_cache&, const ledger&, measured&);
  ~readers() { stop(); }

  void stop();

 private:
  void read_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void read(key_number);

  const rondo::duration patience_;
  const zipf& popular_;
  record_cache& cache_;
  const ledger& ledger_;
  measured& measured_;
  std::vector<std::jthread> threads_;
};

struct writer_options {
  unsigned edits_per_second = 0;
  std::uint64_t seed = 0;
};

// Changes random values at the origin, as its users would, and enters each change in the ledger.
class writer {
 public:
  // Does nothing for an origin that this program cannot change.
  writer(const writer_options&, origin&, const std::vector<std::string>& names, ledger&, measured&);
  ~writer() { stop(); }

  void stop();

 private:
  void write_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void edit(std::size_t key);
  void settle_unknown(std::size_t key, const std::string& before);

  const std::unique_ptr<origin_editor> editor_;
  const std::unique_ptr<origin_connection> origin_;
  const std::vector<std::string>& names_;
  ledger& ledger_;
  measured& measured_;
  std::jthread thread_;
};

}  // namespace cache_refresh
