// The ledger records when each value that this program has replaced at the origin was superseded. It shows for every
// read how far behind the origin the value was.
//
// It errs on the safe side: the writer enters a change *before* committing it, so a value may count as superseded for
// longer than it was, by the duration of a commit. The ledger does not know of changes by others.
//
// Each change takes 16 bytes (140 MB a day at 100 per second). Nothing is discarded, because a failing origin may
// leave any old value in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <rondo/time.hpp>

namespace cache_refresh {

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

}  // namespace cache_refresh
