// The core of refreshing_cache: its entries, their timers and loads. Included by refreshing_cache.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rondo/time.hpp>
#include <rondo/timer_scope.hpp>

#include "refreshing_cache.hpp"
#include "refreshing_cache_parts.hpp"

namespace cache_refresh {

template <class Key, class Value, class Hash>
class refreshing_cache<Key, Value, Hash>::core : public std::enable_shared_from_this<core> {
 public:
  core(rondo::scheduler& scheduler, const refresh_policy& policy, begin_load begin)
      : scheduler_(scheduler), policy_(policy), begin_(std::move(begin)) {
    for (shard& each : shards_)
      each.random.seed(policy.seed + static_cast<std::uint64_t>(&each - shards_.data()));
  }

  found find(const Key& key, on_found then) {
    shard& s = shard_of(key);
    found got;
    bool queued = false;
    bool waits = false;
    {
      const std::lock_guard guard(s.lock);
      if (!closed_) {
        const rondo::time_point now = scheduler_.now();
        entry& e = s.entries.try_emplace(key).first->second;
        e.read_at = now;
        e.read = true;
        got = look(e, now);
        count_read(got);
        if (e.stage == load_stage::queued && !got.value) {
          queued = enqueue(key, e, true);  // again: it now goes first
        } else {
          queued = claim_if_due(s, key, e, now, !got.value);
        }
        waits = then && !got.value && e.stage != load_stage::over && wait(s, key, e, then);
      }
    }
    if (queued) begin_queued();
    if (then && !waits) then(got);
    return got;
  }

  void prefetch(const Key& key) {
    shard& s = shard_of(key);
    bool queued = false;
    {
      const std::lock_guard guard(s.lock);
      if (closed_) return;
      const rondo::time_point now = scheduler_.now();
      const auto [place, is_new] = s.entries.try_emplace(key);
      if (is_new) place->second.read_at = now;
      queued = claim_if_due(s, key, place->second, now, false);
    }
    if (queued) begin_queued();
  }

  std::shared_ptr<const Value> held(const Key& key) const {
    const shard& s = shard_of(key);
    const std::lock_guard guard(s.lock);
    const auto place = s.entries.find(key);
    return place == s.entries.end() ? nullptr : place->second.value;
  }

  template <class F>
  void for_each(F&& visit) const {
    for (const shard& s : shards_) {
      const std::lock_guard guard(s.lock);
      for (const auto& [key, e] : s.entries) {
        key_state now;
        if (e.stage == load_stage::over) now.next_load = e.next_load;
        if (e.timer != rondo::timer_id()) now.timer_due = e.timer_due;
        if (e.value) now.served_until = end_of(e);
        now.failing = e.failing.get();
        visit(key, now);
      }
    }
  }

  void refresh(const Key& key) {
    shard& s = shard_of(key);
    bool queued = false;
    {
      const std::lock_guard guard(s.lock);
      const auto place = s.entries.find(key);
      if (closed_ || place == s.entries.end()) return;
      entry& e = place->second;
      if (e.stage == load_stage::begun) e.again = true;  // a load that has not begun will see the change
      if (e.stage == load_stage::over) queued = claim(s, key, e, false);
    }
    if (queued) begin_queued();
  }

  bool remove(const Key& key) {
    shard& s = shard_of(key);
    std::vector<on_found> told;
    typename entries::node_type gone;  // destroyed after the lock is released
    {
      const std::lock_guard guard(s.lock);
      const auto place = s.entries.find(key);
      if (place == s.entries.end()) return false;
      timers_.cancel(place->second.timer);
      enter(place->second, load_stage::over);
      gone = s.entries.extract(place);
      told = s.waiting.take(key);
    }
    waiting::tell(told, nothing());
    return true;
  }

  void close() {
    if (closed_.exchange(true)) return;
    const auto kept = this->shared_from_this();  // a reader may destroy the cache when it is told
    for (shard& s : shards_) {
      waiting told;
      {
        const std::lock_guard guard(s.lock);
        for (auto& [key, e] : s.entries) enter(e, load_stage::over);
        told = s.waiting.take();
      }
      told.tell(nothing());
    }
    timers_.close();
    queue_.close();
  }

  // Ends a load. `value` is null if the load failed; then `why` says why.
  void end(const load& ended, std::shared_ptr<const Value> value, time_to_live ttl,
           std::string why) noexcept {
    shard& s = shard_of(ended.key());
    std::vector<on_found> told;
    found got = nothing();
    {
      const std::lock_guard guard(s.lock);
      const auto place = s.entries.find(ended.key());
      if (closed_ || place == s.entries.end() || place->second.load != ended.number_ ||
          place->second.stage != load_stage::begun) {
        ++counted_.late_answers;
      } else {
        entry& e = place->second;
        if (value) {
          ++(value == ended.held_ ? counted_.confirmed : counted_.loaded);
          succeed(s, ended, e, value, ttl);
          // A reader gets what it has waited for, however long that took.
          const rondo::time_point now = scheduler_.now();
          got = {e.value, now >= e.fresh_until, now - e.loaded_at, true};
        } else {
          fail(s, ended.key(), e, std::move(why));
        }
        told = s.waiting.take(ended.key());
      }
    }
    queue_.release();
    waiting::tell(told, got);
    begin_queued();
  }

  cache_statistics stats() const {
    const cache_counters& c = counted_;
    return {c.hits,
            c.stale_hits,
            c.misses,
            c.loads,
            c.loaded,
            c.confirmed,
            c.failed,
            c.unread_loads,
            c.late_answers,
            c.forgotten,
            queue_.in_progress(),
            c.waiting,
            c.failed_in_a_row,
            c.failing_since.load()};
  }

  key_counts count() const {
    key_counts all;
    for (const shard& s : shards_) {
      const std::lock_guard guard(s.lock);
      const rondo::time_point now = scheduler_.now();
      for (const auto& [key, e] : s.entries) {
        const found got = look(e, now);
        ++(!got.value ? all.empty : got.stale ? all.stale : all.fresh);
        if (e.failures != 0) ++all.failing;
        if (got.value) all.served_until = std::min(end_of(e), all.served_until.value_or(end_of(e)));
      }
    }
    return all;
  }

 private:
  using waiting = waiting_readers<Key, found, Hash>;

  struct entry {
    std::shared_ptr<const Value> value;
    rondo::time_point loaded_at;     // when the load of the value began
    rondo::time_point fresh_until;   // soft TTL
    rondo::time_point served_until;  // hard TTL
    rondo::time_point next_load;     // no load begins before this; after a failure, the end of the backoff
    rondo::time_point read_at;
    // For the next load, for the deadline of the current load, for the readers' patience while it is queued, or for the
    // end of the key. None if the scheduler has ended or has no room. Then readers begin the loads, without a deadline.
    rondo::timer_id timer;
    rondo::time_point timer_due;
    std::uint64_t load = 0;  // the number of the latest load
    // Only of a key that fails, because few do. Null also if out of memory.
    std::unique_ptr<key_state::failure> failing;
    unsigned failures = 0;  // in a row
    load_stage stage = load_stage::over;
    bool read = false;   // since the last load began
    bool again = false;  // load once more after this load
  };

  using entries = std::unordered_map<Key, entry, Hash>;

  struct shard {
    mutable std::mutex lock;
    core::entries entries;
    core::waiting waiting;  // readers that got no value and wait for the load
    random_source random;
  };

  // The hash is multiplied, because Hash may be the identity and its low bits choose the place in the shard's table.
  static std::size_t number_of(const Key& key) {
    return (std::uint64_t{Hash{}(key)} * 0x9e3779b97f4a7c15u) >> 58;
  }
  shard& shard_of(const Key& key) { return shards_[number_of(key)]; }
  const shard& shard_of(const Key& key) const { return shards_[number_of(key)]; }

  found look(const entry& e, rondo::time_point now) const {
    const bool stale = now >= e.fresh_until;
    if (now >= end_of(e)) return {};
    return {e.value, stale, now - e.loaded_at};
  }

  rondo::time_point end_of(const entry& e) const {
    return policy_.mode == refresh_mode::expire ? e.fresh_until : e.served_until;
  }

  void count_read(const found& got) {
    ++(got.value ? counted_.hits : counted_.misses);
    if (got.value && got.stale) ++counted_.stale_hits;
  }

  // Makes the reader wait for the entry's load. Returns false if out of memory.
  bool wait(shard& s, const Key& key, entry& e, on_found& then) {
    if (!s.waiting.add(key, then)) return false;
    if (e.timer == rondo::timer_id()) arm(key, e, rondo::saturating_add(e.read_at, policy_.load_deadline));
    return true;
  }

  static found nothing() { return {nullptr, false, {}, true}; }

  void enter(entry& e, load_stage next) {
    if (is_queued(next) && !is_queued(e.stage)) ++counted_.waiting;
    if (is_queued(e.stage) && !is_queued(next)) --counted_.waiting;
    e.stage = next;
  }

  // Queues a load of the entry. Returns false if out of memory: the load has then failed.
  bool claim(shard& s, const Key& key, entry& e, bool first) {
    timers_.cancel(e.timer);
    e.timer = {};  // its run may have begun: it will see that it is no longer the entry's timer
    e.again = false;
    e.load = ++numbers_;
    if (!enqueue(key, e, first)) fail(s, key, e, "out of memory");
    return e.stage != load_stage::over;
  }

  // Returns false if there is nothing to load, or not now. Readers who would get nothing skip the pause after a slow
  // load.
  bool claim_if_due(shard& s, const Key& key, entry& e, rondo::time_point now, bool first) {
    if (e.stage != load_stage::over || (e.value && now < e.fresh_until)) return false;
    const bool waits = e.failures != 0 || look(e, now).value;
    return !(waits && now < e.next_load) && claim(s, key, e, first);
  }

  bool enqueue(const Key& key, entry& e, bool first) {
    if (!queue_.push(key, e.load, first)) return false;
    enter(e, first ? load_stage::queued_first : load_stage::queued);
    return true;
  }

  void begin_queued() {
    const auto kept = this->weak_from_this().lock();  // a reader may destroy the cache when it is told
    queue_.run([this](typename load_queue<Key>::item next) { begin(std::move(next)); });
  }

  void begin(typename load_queue<Key>::item next) noexcept {
    std::optional<load> begun;
    {
      shard& s = shard_of(next.key);
      const std::lock_guard guard(s.lock);
      const auto place = s.entries.find(next.key);
      if (!closed_ && place != s.entries.end() && place->second.load == next.number &&
          is_queued(place->second.stage)) {
        entry& e = place->second;
        enter(e, load_stage::begun);
        begun.emplace(load(this->shared_from_this(), std::move(next.key)));
        begun->number_ = e.load;
        begun->held_ = e.value;
        begun->began_ = scheduler_.now();
        begun->deadline_ = rondo::saturating_add(begun->began_, policy_.load_deadline);
        arm(begun->key(), e, begun->deadline_);
        ++counted_.loads;
        if (!std::exchange(e.read, false) && e.value) ++counted_.unread_loads;
      }
    }
    if (!begun) return queue_.release();  // the key was removed, or an earlier entry has begun its load
    try {
      begin_(std::move(*begun));
    } catch (...) {
      // The load was destroyed with the argument of the call, so it has failed.
    }
  }

  // Makes the entry's timer due at `due`.
  void arm(const Key& key, entry& e, rondo::time_point due) noexcept {
    e.timer_due = due;
    try {
      if (timers_.reschedule_at(e.timer, due)) return;
      // A capture [key] would be const, so moving it could throw, and the timer's task would need an allocation.
      e.timer = timers_.schedule_at(due, [this, key = key](const rondo::firing& f) { on_timer(key, f.id); });
    } catch (...) {
      timers_.cancel(e.timer);
      e.timer = {};
    }
  }

  void on_timer(const Key& key, rondo::timer_id id) {
    shard& s = shard_of(key);
    std::vector<on_found> told;
    bool queued = false;
    typename entries::node_type gone;  // destroyed after the lock is released
    {
      const std::lock_guard guard(s.lock);
      const auto place = s.entries.find(key);
      if (closed_ || place == s.entries.end() || place->second.timer != id) return;
      entry& e = place->second;
      e.timer = {};
      const rondo::time_point now = scheduler_.now();
      if (e.stage !=
          load_stage::over) {  // past its deadline, or readers have waited long enough for it to begin
        if (e.stage == load_stage::begun) fail(s, key, e, "no answer");
        told = s.waiting.take(key);
      } else if (policy_.mode == refresh_mode::ahead ? now - e.read_at >= policy_.forget_after : !e.again) {
        ++counted_.forgotten;
        gone = s.entries.extract(place);
      } else {
        queued = claim(s, key, e, false);
      }
    }
    if (queued) begin_queued();
    waiting::tell(told, nothing());
  }

  void succeed(shard& s, const load& ended, entry& e, std::shared_ptr<const Value>& value, time_to_live ttl) {
    const rondo::duration soft = ttl.soft.value_or(policy_.soft_ttl);
    const rondo::duration hard = std::max(soft, ttl.hard.value_or(policy_.hard_ttl));
    e.value.swap(value);  // the old value is destroyed with the argument of end(), after the lock is released
    e.loaded_at = ended.began_;
    e.fresh_until = rondo::saturating_add(e.loaded_at, soft);
    e.served_until = rondo::saturating_add(e.loaded_at, hard);
    e.failures = 0;
    e.failing.reset();
    counted_.failed_in_a_row = 0;
    const rondo::time_point pause = rondo::saturating_add(scheduler_.now(), shortest_pause(soft));
    const bool ahead = policy_.mode == refresh_mode::ahead;
    const rondo::duration delay = ahead ? refresh_delay(policy_, soft, s.random) : soft;
    e.next_load = std::max(pause, rondo::saturating_add(e.loaded_at, delay));
    rest(ended.key(), e);
  }

  void fail(shard& s, const Key& key, entry& e, std::string why) noexcept {
    const rondo::time_point now = scheduler_.now();
    ++counted_.failed;
    if (counted_.failed_in_a_row++ == 0) counted_.failing_since = now;
    ++e.failures;
    if (!e.failing) e.failing.reset(new (std::nothrow) key_state::failure{now, now, {}});
    if (e.failing) {
      e.failing->latest = now;
      e.failing->why = std::move(why);
    }
    e.next_load = rondo::saturating_add(now, retry_delay(policy_, e.failures, s.random));
    rest(key, e);
  }

  // Called when the load has ended.
  void rest(const Key& key, entry& e) {
    enter(e, load_stage::over);
    if (e.again) e.next_load = scheduler_.now();
    if (e.again || policy_.mode == refresh_mode::ahead) {
      arm(key, e, e.next_load);
    } else {  // the key ends when it is no longer of use
      arm(key, e, std::max(e.served_until, rondo::saturating_add(e.next_load, policy_.longest_retry)));
    }
  }

  rondo::scheduler& scheduler_;
  const refresh_policy policy_;
  const begin_load begin_;
  std::array<shard, 64> shards_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> numbers_{0};
  cache_counters counted_;
  load_queue<Key> queue_{
      policy_.loads_at_once};              // may also hold keys that were removed or whose load has begun
  rondo::timer_scope timers_{scheduler_};  // last member: its tasks use the others
};

}  // namespace cache_refresh
