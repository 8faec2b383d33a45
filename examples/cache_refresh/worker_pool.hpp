// A few threads that run jobs in the order of submission.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/scheduler.hpp>

namespace cache_refresh {

class worker_pool {
 public:
  explicit worker_pool(std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      threads_.emplace_back([this](std::stop_token stop) { work(stop); });
    }
  }

  // Drops jobs that have not started, and waits for the others.
  ~worker_pool() {
    for (std::jthread& each : threads_) each.request_stop();
    threads_.clear();
  }

  void submit(rondo::job job) {
    {
      const std::lock_guard guard(lock_);
      waiting_.push_back(std::move(job));
    }
    submitted_.notify_one();
  }

 private:
  void work(const std::stop_token& stop) {
    while (std::optional<rondo::job> next = take(stop)) (*next)();
  }

  // Waits for the next job; none if asked to stop.
  std::optional<rondo::job> take(const std::stop_token& stop) {
    std::unique_lock guard(lock_);
    submitted_.wait(guard, stop, [this] { return !waiting_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    std::optional<rondo::job> next(std::move(waiting_.front()));
    waiting_.pop_front();
    return next;
  }

  std::mutex lock_;
  std::condition_variable_any submitted_;
  std::deque<rondo::job> waiting_;
  std::vector<std::jthread> threads_;
};

}  // namespace cache_refresh
