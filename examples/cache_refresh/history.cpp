#include "history.hpp"

#include <chrono>

namespace cache_refresh {

void history::add(const snapshot& now) {
  const std::lock_guard guard(lock_);
  using std::chrono::floor;
  using std::chrono::seconds;
  if (floor<seconds>(now.elapsed) <= floor<seconds>(at_)) return;
  const double passed = std::chrono::duration<double>(now.elapsed - at_).count();
  const auto per_second = [passed](std::uint64_t to, std::uint64_t from) {
    return static_cast<double>(to - from) / passed;
  };
  samples_.push_back({now.elapsed, per_second(now.cache.loads, loads_), per_second(now.cache.failed, failed_),
                      stale_share(now.keys)});
  if (samples_.size() > most) samples_.pop_front();
  at_ = now.elapsed;
  loads_ = now.cache.loads;
  failed_ = now.cache.failed;
}

std::vector<history::sample> history::all() const {
  const std::lock_guard guard(lock_);
  return {samples_.begin(), samples_.end()};
}

}  // namespace cache_refresh
