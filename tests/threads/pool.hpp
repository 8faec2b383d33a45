// A small thread pool.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/job.hpp>

namespace rondo::test {

class pool {
 public:
  explicit pool(std::size_t workers) {
    for (std::size_t i = 0; i != workers; ++i) workers_.emplace_back([this] { work(); });
  }
  ~pool() { shut_down(); }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// Drops the job after shut_down().
  void post(job j) {
    const std::lock_guard hold(mutex_);
    if (closed_) return;
    jobs_.push_back(std::move(j));
    changed_.notify_all();  // notify_one() would do, but glibc before 2.41 can lose it (its bug 25847)
  }

  auto executor() {
    return [this](job j) { post(std::move(j)); };
  }

  /// Ends the workers after the jobs they are running, and drops the other jobs.
  void shut_down() {
    {
      const std::lock_guard hold(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
    for (std::thread& w : workers_)
      if (w.joinable()) w.join();
    const std::deque<job> dropped_without_the_lock = std::exchange(jobs_, {});
  }

 private:
  void work() {
    std::unique_lock hold(mutex_);
    for (;;) {
      changed_.wait(hold, [this] { return closed_ || !jobs_.empty(); });
      if (closed_) return;
      job next = std::move(jobs_.front());
      jobs_.pop_front();
      hold.unlock();
      next();
      next = job();
      hold.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  bool closed_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace rondo::test
