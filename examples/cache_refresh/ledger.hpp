// The ledger: when each value that this program has replaced at the origin was superseded. With it every read can be
// judged: how far behind the origin was the value it got?
//
// It errs on the safe side: the writer enters a change *before* it commits it. A value may count as superseded for longer
// than it was, by the length of a commit. Changes by others it does not know.
//
// Each change takes 16 bytes (140 MB a day at 100 a second), since a failing origin may leave any old value in the cache.
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

  // The key's value with this validator is about to be replaced; has been, by one with that; has not been after all. For
  // the one writer.
  void supersede(std::size_t key, const std::string& validator, rondo::time_point at);
  void settle(std::size_t key, const std::string& newest);
  void withdraw(std::size_t key);

  // How long ago, at the time given, the value with this validator had been superseded; zero if it was current.
  rondo::duration behind(std::size_t key, const std::string& validator, rondo::time_point served_at) const;

 private:
  struct superseded {
    std::uint64_t value;  // the validator's hash
    rondo::time_point at;
  };

  struct history {
    std::vector<superseded> past;  // in order
    std::uint64_t newest = 0;      // 0: not known, as long as it is being replaced
  };

  std::mutex& lock_of(std::size_t key) const { return locks_[key % locks_.size()]; }

  mutable std::array<std::mutex, 64> locks_;
  std::vector<history> histories_;
};

}  // namespace cache_refresh
