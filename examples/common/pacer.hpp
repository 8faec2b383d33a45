// Lets a thread act at random moments with a given mean rate, as independent users do (a Poisson process).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stop_token>

namespace common {

class pacer {
 public:
  // `per_second` must be greater than 0.
  explicit pacer(double per_second) : gap_(per_second), next_(clock::now()) {}

  // Waits until the next moment, unless it has passed. Returns false if asked to stop.
  bool wait(const std::stop_token& stop, std::mt19937_64& random) {
    next_ += std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(gap_(random)));
    std::unique_lock guard(lock_);
    stopped_.wait_until(guard, stop, next_, [] { return false; });
    return !stop.stop_requested();
  }

 private:
  using clock = std::chrono::steady_clock;

  std::exponential_distribution<double> gap_;
  clock::time_point next_;
  std::mutex lock_;
  std::condition_variable_any stopped_;  // notified only by the stop token
};

}  // namespace common
