// Threads that have, or share, shards.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sync/sync.hpp"

namespace rondo::test {

/// Does what it is told, on a thread of its own.
class worker {
 public:
  worker() {
    do_now([this] { number_ = detail::sync::thread_number(); });
  }
  ~worker() {
    do_now({});
    thread_.join();
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  bool has_own_shard() const { return number_ < detail::sync::own_shards; }

  /// Returns when it is done. Without a function, the thread ends.
  void do_now(std::function<void()> what) {
    std::unique_lock hold(mutex_);
    what_ = std::move(what);
    is_told_ = true;
    changed_.notify_all();
    changed_.wait(hold, [this] { return !is_told_; });
  }

 private:
  void work() {
    for (bool goes_on = true; goes_on;) {
      std::unique_lock hold(mutex_);
      changed_.wait(hold, [this] { return is_told_; });
      goes_on = what_ != nullptr;
      if (goes_on) what_();
      is_told_ = false;
      changed_.notify_all();
    }
  }

  std::size_t number_ = 0;
  std::function<void()> what_;
  bool is_told_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_{[this] { work(); }};
};

/// Threads 0, 1 and 2 have a shard each; all others are two threads, each with a shard that it might share.
class pool_threads {
 public:
  static constexpr std::size_t shards = 5;

  static void on(std::size_t thread, std::function<void()> what) {
    static pool_threads all;
    worker& who = thread < 3 ? *all.own_[thread] : *all.sharing_[(thread - 3) % 2];
    who.do_now(std::move(what));
  }

 private:
  pool_threads() {
    while (sharing_.size() != 2) {  // each shard that a thread can own must have its thread first
      auto next = std::make_unique<worker>();
      (next->has_own_shard() ? own_ : sharing_).push_back(std::move(next));
    }
  }

  std::vector<std::unique_ptr<worker>> own_, sharing_;
};

}  // namespace rondo::test
