// The ledger: when each version of each row was superseded at the origin. With it every read can be judged:
// how far behind the origin was the value it got?
//
// It errs on the safe side: the writer enters a change *before* it commits it, so readers cannot see or miss a version
// that is not in the ledger. A value may count as superseded for longer than it was, by the length of a commit.
//
// One time per edit is kept (8 bytes: 70 MB a day at 100 edits a second), since a failing origin may keep any
// old version in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <rondo/time.hpp>

#include "origin.hpp"

namespace cache_refresh {

class ledger {
 public:
  explicit ledger(const std::vector<row>& rows);

  // The key's next version is about to be committed / could not be committed after all. For the one writer.
  void announce(std::size_t key, std::int64_t version, rondo::time_point at);
  void withdraw(std::size_t key);

  // How long ago, at the time given, this version had been superseded; zero if it was the current one.
  rondo::duration behind(std::size_t key, std::int64_t version, rondo::time_point served_at) const;

  // How many versions there have been that were not announced, if `newest` is the key's version at the
  // origin: another program wrote to it, and reads of these rows may have been behind for longer than the
  // ledger says.
  std::int64_t unannounced(std::size_t key, std::int64_t newest) const;

 private:
  struct history {
    std::int64_t first = 0;                     // the version at the start
    std::vector<rondo::time_point> superseded;  // [i]: when `first + i` was
    std::int64_t unannounced = 0;

    std::int64_t newest() const noexcept { return first + static_cast<std::int64_t>(superseded.size()); }
  };

  std::mutex& lock_of(std::size_t key) const { return locks_[key % locks_.size()]; }

  mutable std::array<std::mutex, 64> locks_;
  std::vector<history> histories_;
};

}  // namespace cache_refresh
