// A cache that reloads its values before they expire, whether or not anybody reads them. Made to be copied: it needs
// this file, refreshing_cache_core.hpp, refreshing_cache_parts.hpp, refresh_policy.hpp and Rondo.
//
//     refreshing_cache<std::string, user> users(timer, {.soft_ttl = 1min}, [&](auto load) {
//       pool.post([load = std::move(load)]() mutable { load.store(query(load.key())); });
//     });
//     if (auto found = users.wait_for("ada", 1s); found.value) …
//
// - A key enters the cache with its first read. From then on it has one timer, which is due when the next load begins
//   or, while a load is in progress, at the load's deadline. So no key is forgotten, and none is loaded twice at once.
// - A value is fresh, then stale, then no longer served (see refresh_policy). While loads fail, the stale value is
//   served.
// - Loads that succeed and loads that fail have separate schedules. At most loads_at_once are in progress; those that
//   readers wait for go first.
// - Time is the scheduler's, so all of this can be tested with a manual_timer.
//
// All members may be called from any thread. The functions that you pass are called without a lock. Their exceptions
// are dropped, except those of a `then` that find() itself calls.
//
// The cache schedules timers while it holds the lock of one of its shards. If the scheduler is a polled_timer, its
// on_earlier may therefore run under that lock, so it must not call the cache.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

#include "refresh_policy.hpp"

namespace cache_refresh {

// What a reader gets.
template <class Value>
struct lookup {
  std::shared_ptr<const Value> value;  // null if none may be served
  bool stale = false;
  rondo::duration age{};  // since the start of the load that brought or confirmed the value
  bool waited = false;    // whether the read waited for a load to end
};

// The time to live that a load supplies. The policy supplies whatever is empty.
struct time_to_live {
  std::optional<rondo::duration> soft{};
  std::optional<rondo::duration> hard{};
};

struct cache_statistics {
  std::uint64_t hits = 0;        // reads that were served at once
  std::uint64_t stale_hits = 0;  // hits that got a stale value
  std::uint64_t misses = 0;
  std::uint64_t loads = 0;         // begun
  std::uint64_t loaded = 0;        // brought a value
  std::uint64_t confirmed = 0;     // reported that the value has not changed
  std::uint64_t failed = 0;        // including loads given up at their deadline
  std::uint64_t unread_loads = 0;  // loads of a value that nobody had read since the load before
  std::uint64_t late_answers = 0;  // dropped, because the load had been given up or the key was gone
  std::uint64_t forgotten = 0;     // keys dropped, because nobody read them
  std::size_t in_progress = 0;     // loads whose answers are awaited now
  std::size_t waiting = 0;         // loads that wait for one of those to end
  // Loads that have failed since the last one that succeeded, and when the first of these failed.
  std::uint64_t failed_in_a_row = 0;
  rondo::time_point failing_since{};  // only if failed_in_a_row is not 0
};

// fresh + stale + empty = all keys.
struct key_counts {
  std::size_t fresh = 0;
  std::size_t stale = 0;    // but still served
  std::size_t empty = 0;    // nothing to serve
  std::size_t failing = 0;  // of all keys: the last load failed
  // Until then at least, every value that is served now will be served. None if no value is.
  std::optional<rondo::time_point> served_until{};
};

// The state of one key.
struct key_state {
  std::optional<rondo::time_point> next_load;     // the earliest time; none while the key is being loaded
  std::optional<rondo::time_point> timer_due;     // none if the key has no timer
  std::optional<rondo::time_point> served_until;  // may have passed; none if there is no value
  struct failure {
    rondo::time_point since;   // the key's first failed load since the last one that succeeded
    rondo::time_point latest;  // its last failed load
    std::string why;           // of the last one
  };
  const failure* failing = nullptr;  // null if the last load succeeded; valid during the visit
};

template <class Key, class Value, class Hash = std::hash<Key>>
class refreshing_cache {
  class core;

 public:
  using found = lookup<Value>;

  // One load. It begins when the cache calls your function, and ends with store(), not_modified() or fail(), on any
  // thread. If it is destroyed before that, it has failed. It may outlive the cache.
  class load {
   public:
    load(load&&) noexcept = default;
    load& operator=(load&&) = delete;
    ~load() {
      if (core_) fail("no answer");
    }

    const Key& key() const noexcept { return key_; }
    // The value that the cache holds, for a conditional request; it may be too old to be served. Null if there is none.
    const std::shared_ptr<const Value>& held() const noexcept { return held_; }
    // An answer after this is dropped.
    rondo::time_point deadline() const noexcept { return deadline_; }

    void store(Value value, time_to_live ttl = {}) {
      end(std::make_shared<const Value>(std::move(value)), ttl, {});
    }
    // Confirms the value that the cache holds. If there is none, the load has failed.
    void not_modified(time_to_live ttl = {}) {
      end(held_, ttl, held_ ? "" : "not modified, although no value is held");
    }
    // `why` is for people; for_each() tells it until a load of the key succeeds.
    void fail(std::string why = "failed") { end(nullptr, {}, std::move(why)); }

   private:
    friend class core;
    load(std::shared_ptr<core> owner, Key key) : core_(std::move(owner)), key_(std::move(key)) {}

    void end(std::shared_ptr<const Value> value, time_to_live ttl, std::string why) noexcept {
      if (const auto ended = std::exchange(core_, nullptr))
        ended->end(*this, std::move(value), ttl, std::move(why));
    }

    std::shared_ptr<core> core_;
    Key key_;
    std::shared_ptr<const Value> held_;
    rondo::time_point began_;
    rondo::time_point deadline_;
    std::uint64_t number_ = 0;
  };

  using begin_load = std::function<void(load)>;
  using on_found = std::function<void(const found&)>;

  // `begin` is called for each load, on a reader's thread, on the scheduler's driver or on the thread that ended
  // another load. It should hand the load to another thread and return. If it throws, the load has failed. The
  // scheduler must outlive the cache.
  refreshing_cache(rondo::scheduler& scheduler, refresh_policy policy, begin_load begin)
      : core_(std::make_shared<core>(scheduler, policy, std::move(begin))) {}
  ~refreshing_cache() { close(); }
  refreshing_cache(const refreshing_cache&) = delete;
  refreshing_cache& operator=(const refreshing_cache&) = delete;

  // Returns what can be served now. If there is nothing, a load begins, unless one is in progress or has just failed.
  found find(const Key& key) { return core_->find(key, {}); }
  // Calls `then` with what can be served: at once, or when the load that this read waits for has ended. There is no
  // value if the load failed, if the last load failed so recently that none is tried, or if the load could not begin
  // within policy.load_deadline.
  void find(const Key& key, on_found then) { core_->find(key, std::move(then)); }
  // As find(key, then), but waits, for at most `limit` of real time, and returns the result.
  found wait_for(const Key& key, rondo::duration limit);

  // Loads the key if it is not fresh, without counting as a read.
  void prefetch(const Key& key) { core_->prefetch(key); }

  // Call this when the value has changed at its origin: loads it now, if the key is in the cache. A load in progress
  // may bring a value from before the change, so another one follows it.
  void refresh(const Key& key) { core_->refresh(key); }
  // Removes the key. Readers that wait for it get nothing. Returns false if the key is not in the cache.
  bool remove(const Key& key) { return core_->remove(key); }

  // From now on no load begins, and answers are dropped. Readers that wait get nothing. Once close() has returned, no
  // other thread calls `begin`, unless another thread had called close() before: then it returns at once. It does not
  // wait for loads, nor for a `then` that another thread is calling at the end of a load. The destructor calls close().
  void close() { core_->close(); }

  cache_statistics stats() const { return core_->stats(); }
  key_counts count() const { return core_->count(); }  // visits every key

  // For monitoring. Returns the value that is held, which may be too old to be served; null if there is none.
  std::shared_ptr<const Value> held(const Key& key) const { return core_->held(key); }
  // Calls visit(key, key_state) for every key, under a lock: `visit` must not call the cache.
  template <class F>
  void for_each(F&& visit) const {
    core_->for_each(visit);
  }

 private:
  std::shared_ptr<core> core_;  // shared with each load in progress
};

template <class Key, class Value, class Hash>
auto refreshing_cache<Key, Value, Hash>::wait_for(const Key& key, rondo::duration limit) -> found {
  struct answer {
    std::mutex lock;
    std::condition_variable came;
    std::optional<found> got;
  };
  const auto awaited = std::make_shared<answer>();
  find(key, [awaited](const found& got) {
    const std::lock_guard guard(awaited->lock);
    awaited->got = got;
    awaited->came.notify_one();
  });
  std::unique_lock guard(awaited->lock);
  const auto end = rondo::saturating_add(std::chrono::steady_clock::now(), limit);
  if (awaited->came.wait_until(guard, end, [&] { return awaited->got.has_value(); })) return *awaited->got;
  found nothing;
  nothing.waited = true;
  return nothing;
}

}  // namespace cache_refresh

#include "refreshing_cache_core.hpp"
