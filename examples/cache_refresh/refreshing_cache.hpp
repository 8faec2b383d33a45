// A cache that loads its values again before they expire, whether or not anybody reads them. To be copied: it needs this
// file, refreshing_cache_core.hpp, refreshing_cache_parts.hpp, refresh_policy.hpp and Rondo.
//
//     refreshing_cache<std::string, user> users(timer, {.soft_ttl = 1min}, [&](auto load) {
//       pool.post([load = std::move(load)]() mutable { load.store(query(load.key())); });
//     });
//     if (auto found = users.wait_for("ada", 1s); found.value) …
//
// - A key enters with its first read. From then on it has one timer, which is due when the next load begins, or while one
//   is in progress when that has taken too long. So no key is forgotten, and none is loaded twice at once.
// - A value is fresh, then stale, then not served any more (refresh_policy). While loads fail, the stale one is served.
// - Loads that succeed and loads that fail have schedules of their own. No more than loads_at_once are in progress; those
//   that readers wait for go first.
// - Time is the scheduler's, so all of this can be tested with a manual_timer.
//
// All members may be called from any thread. The functions that you give are called without a lock; what they throw is
// dropped, except by a `then` that is called at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

#include "refresh_policy.hpp"

namespace cache_refresh {

// What a reader gets.
template <class Value>
struct lookup {
  std::shared_ptr<const Value> value;  // null: there is none that may be served
  bool stale = false;
  rondo::duration age{};  // since the load that brought or confirmed it began
  bool waited = false;    // for a load to end
};

// What a load says of the time to live; for what it does not say the policy holds.
struct time_to_live {
  std::optional<rondo::duration> soft{};
  std::optional<rondo::duration> hard{};
};

struct cache_statistics {
  std::uint64_t hits = 0;        // reads that were served at once,
  std::uint64_t stale_hits = 0;  // and of these, with a stale value
  std::uint64_t misses = 0;
  std::uint64_t loads = 0;         // begun
  std::uint64_t loaded = 0;        // brought a value
  std::uint64_t confirmed = 0;     // said that the value has not changed
  std::uint64_t failed = 0;        // those given up at their deadline included
  std::uint64_t unread_loads = 0;  // of all loads, those of a value that nobody had read since the one before
  std::uint64_t late_answers = 0;  // dropped, as the load had been given up or the key was gone
  std::uint64_t forgotten = 0;     // keys dropped, as nobody read them
  std::size_t in_progress = 0;     // answers that are awaited now
  std::size_t waiting = 0;         // loads that wait for one of these to end
};

// fresh + stale + empty = all keys.
struct key_counts {
  std::size_t fresh = 0;
  std::size_t stale = 0;    // but served
  std::size_t empty = 0;    // nothing to serve
  std::size_t failing = 0;  // of all: the last load failed
};

// Of one key.
struct key_times {
  std::optional<rondo::time_point> next_load;  // the earliest; none: it is being loaded
  std::optional<rondo::time_point> timer_due;  // none: it has no timer
};

template <class Key, class Value, class Hash = std::hash<Key>>
class refreshing_cache {
  class core;

 public:
  using found = lookup<Value>;

  // One load: begins with the cache's call of your function and ends with one of store(), not_modified() and fail(), on
  // any thread. Destroyed before, it has failed. It may outlive the cache.
  class load {
   public:
    load(load&&) noexcept = default;
    load& operator=(load&&) = delete;
    ~load() {
      if (core_) fail();
    }

    const Key& key() const noexcept { return key_; }
    // What the cache holds, perhaps too old to be served: for a conditional request. Null: nothing.
    const std::shared_ptr<const Value>& held() const noexcept { return held_; }
    // After this the answer is dropped.
    rondo::time_point deadline() const noexcept { return deadline_; }

    void store(Value value, time_to_live ttl = {}) {
      end(std::make_shared<const Value>(std::move(value)), ttl);
    }
    // The value that is held is as good as new. If there is none, that is a failure.
    void not_modified(time_to_live ttl = {}) { end(held_, ttl); }
    void fail() { end(nullptr, {}); }

   private:
    friend class core;
    load(std::shared_ptr<core> owner, Key key) : core_(std::move(owner)), key_(std::move(key)) {}

    void end(std::shared_ptr<const Value> value, time_to_live ttl) noexcept {
      if (const auto ended = std::exchange(core_, nullptr)) ended->end(*this, std::move(value), ttl);
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

  // `begin` is called for each load, by a reader's thread, the scheduler's driver or the one that ended another load. It
  // should hand the load over to another thread and return; if it throws, the load has failed. The scheduler outlives the
  // cache.
  refreshing_cache(rondo::scheduler& scheduler, refresh_policy policy, begin_load begin)
      : core_(std::make_shared<core>(scheduler, policy, std::move(begin))) {}
  ~refreshing_cache() { close(); }
  refreshing_cache(const refreshing_cache&) = delete;
  refreshing_cache& operator=(const refreshing_cache&) = delete;

  // What can be served now. If that is nothing, a load begins (unless one is in progress, or has just failed).
  found find(const Key& key) { return core_->find(key, {}); }
  // Calls `then` with what can be served: at once, or when the load that this read waits for has ended. Without a value:
  // it failed, or has failed so recently that none is tried, or could not begin for so long as policy.load_deadline.
  void find(const Key& key, on_found then) { core_->find(key, std::move(then)); }
  // The same, but waits, at most so long in real time.
  found wait_for(const Key& key, rondo::duration limit);

  // Has the key loaded, if it is not fresh, without counting as a read.
  void prefetch(const Key& key) { core_->prefetch(key); }

  // The value has changed at its origin: loads it now, if the key is in the cache. What a load in progress brings may be
  // from before the change, so another one follows it.
  void refresh(const Key& key) { core_->refresh(key); }
  // Its readers that wait get nothing. False if the key is not in the cache.
  bool remove(const Key& key) { return core_->remove(key); }

  // From now on no load begins, and answers are dropped; readers that wait get nothing. When it returns, no other thread
  // calls `begin`. It waits for no load, nor for a `then` that the end of a load is just calling on another thread. The
  // destructor does the same.
  void close() { core_->close(); }

  cache_statistics stats() const { return core_->stats(); }
  key_counts count() const { return core_->count(); }  // visits every key

  // For those who look after the cache. What is held, though perhaps not served; null: nothing.
  std::shared_ptr<const Value> held(const Key& key) const { return core_->held(key); }
  // Calls visit(key, key_times) for every key, each under a lock: it must not call the cache.
  template <class F>
  void for_each(F&& visit) const {
    core_->for_each(visit);
  }

 private:
  std::shared_ptr<core> core_;  // with each load in progress
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
