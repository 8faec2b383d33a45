// A refreshing_cache over an origin, as in the program: with a real timer and a few threads that load.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/timer.hpp>

#include "origin.hpp"
#include "refreshing_cache.hpp"

namespace cache_refresh_test {

class refreshed_origin {
 public:
  using cache_type = cache_refresh::refreshing_cache<std::string, cache_refresh::record>;

  refreshed_origin(cache_refresh::origin& from, const cache_refresh::refresh_policy& policy,
                   std::size_t threads = 3)
      : cache(timer_, policy, [this](cache_type::load begun) { post(std::move(begun)); }) {
    for (std::size_t i = 0; i < threads; ++i)
      threads_.emplace_back([this, loader = from.connect()] { work(*loader); });
    // An empty key means that anything may have changed. The program itself then loads all keys.
    news_ = from.watch([this](const std::string& key) { cache.refresh(key); });
  }

  ~refreshed_origin() {
    news_.reset();
    cache.close();
    {
      const std::lock_guard guard(lock_);
      ended_ = true;
    }
    came_.notify_all();
    for (std::thread& each : threads_) each.join();
  }

  // The value that may be served now, or "" if there is none.
  std::string value(const std::string& key) {
    const auto found = cache.find(key);
    return found.value ? found.value->value : "";
  }

 private:
  void post(cache_type::load begun) {
    {
      const std::lock_guard guard(lock_);
      waiting_.push_back(std::move(begun));
    }
    came_.notify_one();
  }

  void work(cache_refresh::origin_connection& loader) {
    while (auto next = take()) {
      try {
        auto given = loader.load(next->key(), next->held().get(), next->deadline() - timer_.now());
        if (given.changed) {
          next->store(std::move(*given.changed), given.ttl);
        } else {
          next->not_modified(given.ttl);
        }
      } catch (const cache_refresh::origin_error&) {
        next->fail();
      }
    }
  }

  std::optional<cache_type::load> take() {
    std::unique_lock guard(lock_);
    came_.wait(guard, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return std::nullopt;
    std::optional<cache_type::load> next(std::move(waiting_.front()));
    waiting_.pop_front();
    return next;
  }

  rondo::timer timer_;
  std::mutex lock_;
  std::condition_variable came_;
  std::deque<cache_type::load> waiting_;
  bool ended_ = false;

 public:
  cache_type cache;

 private:
  std::vector<std::thread> threads_;
  std::unique_ptr<cache_refresh::origin_news> news_;
};

}  // namespace cache_refresh_test
