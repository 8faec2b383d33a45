// Parts of refreshing_cache that know nothing about its entries.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rondo/time.hpp>

namespace cache_refresh {

// The stage of a key's latest load.
enum class load_stage : std::uint8_t {
  over,          // or there was none
  queued,        // waits for a slot
  queued_first,  // waits for a slot, and goes first
  begun
};

inline bool is_queued(load_stage stage) {
  return stage == load_stage::queued || stage == load_stage::queued_first;
}

struct cache_counters {
  std::atomic<std::uint64_t> hits{0}, stale_hits{0}, misses{0}, loads{0}, loaded{0}, confirmed{0}, failed{0},
      unread_loads{0}, late_answers{0}, forgotten{0};
  std::atomic<std::size_t> waiting{0};
  std::atomic<std::uint64_t> failed_in_a_row{0};
  std::atomic<rondo::time_point> failing_since{};
};

// Which loads are in progress, and which wait for one of them to end. Thread-safe: its lock is the last to be taken,
// and no lock is held while a load begins.
template <class Key>
class load_queue {
 public:
  struct item {
    Key key;
    std::uint64_t number;
  };

  explicit load_queue(std::size_t at_once) : at_once_(at_once) {}

  // Returns false if out of memory.
  bool push(const Key& key, std::uint64_t number, bool first) noexcept {
    try {
      const std::lock_guard guard(lock_);
      (first ? first_ : later_).push_back({key, number});
      return true;
    } catch (...) {
      return false;
    }
  }

  // Calls begin(item) for as many loads as may be in progress. Each of them then has a slot until release(). One thread
  // at a time does this for all, so a load that ends inside `begin` does not call `begin` again.
  template <class Begin>
  void run(Begin begin) {
    std::unique_lock guard(lock_);
    if (runs_ != std::thread::id()) return;
    runs_ = std::this_thread::get_id();
    while (in_progress_ < at_once_ && !(first_.empty() && later_.empty())) {
      auto& queue = first_.empty() ? later_ : first_;
      item next = std::move(queue.front());
      queue.pop_front();
      ++in_progress_;
      guard.unlock();
      begin(std::move(next));
      guard.lock();
    }
    runs_ = {};
    ran_.notify_all();
  }

  void release() {
    const std::lock_guard guard(lock_);
    --in_progress_;
  }

  // Drops what waits, and returns when no run() is in progress, except one on this thread's stack. No push() may
  // follow.
  void close() {
    std::unique_lock guard(lock_);
    first_.clear();
    later_.clear();
    ran_.wait(guard, [this] { return runs_ == std::thread::id() || runs_ == std::this_thread::get_id(); });
  }

  std::size_t in_progress() const {
    const std::lock_guard guard(lock_);
    return in_progress_;
  }

 private:
  const std::size_t at_once_;
  mutable std::mutex lock_;
  std::size_t in_progress_ = 0;
  std::deque<item> first_;  // readers wait for them
  std::deque<item> later_;
  std::thread::id runs_;  // the thread that begins loads
  std::condition_variable ran_;
};

// The readers that wait for the result of a load. Not thread-safe.
template <class Key, class Found, class Hash>
class waiting_readers {
 public:
  using reader = std::function<void(const Found&)>;

  // Returns false if out of memory; `then` is then unchanged.
  bool add(const Key& key, reader& then) noexcept {
    try {
      all_[key].push_back(std::move(then));
      return true;
    } catch (...) {
      return false;
    }
  }

  // Takes the readers of one key, or all of them.
  std::vector<reader> take(const Key& key) noexcept {
    const auto place = all_.find(key);
    if (place == all_.end()) return {};
    std::vector<reader> taken = std::move(place->second);
    all_.erase(place);
    return taken;
  }
  waiting_readers take() noexcept { return std::exchange(*this, {}); }

  static void tell(const std::vector<reader>& those, const Found& got) noexcept {
    for (const reader& each : those) {
      try {
        each(got);
      } catch (...) {
        // The reader's own call has long returned, and the other readers must be told as well.
      }
    }
  }
  void tell(const Found& got) const noexcept {
    for (const auto& [key, those] : all_) tell(those, got);
  }

 private:
  std::unordered_map<Key, std::vector<reader>, Hash> all_;
};

}  // namespace cache_refresh
