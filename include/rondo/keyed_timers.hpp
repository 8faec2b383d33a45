// Timers by key: at most one for each key; setting a key's timer replaces the previous one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <rondo/detail/keyed_core.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// Timers that are looked up by a key and re-armed often: session time-outs, delayed writes, debounced events.
///
///     rondo::keyed_timers<std::string> saves{scheduler};
///     saves.set_after(path, 300ms, [path] { save(path); });   // 300 ms after the last of many calls
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also re-arm their own key
///   and destroy this object.
/// - A key *has* a timer while that is pending: from the call that sets it until its task starts (for a recurring
///   timer: its last run). A key without a timer and without a task in progress is forgotten.
/// - *Replacing*: after the call has returned, the old task does not start (one that had started may be in
///   progress), and its callable is destroyed, unless it is running. The new timer counts as scheduled, the old one
///   as cancelled; if the old one became due during the call it may count as a run instead, which does not call its
///   task.
/// - Calls throw what the scheduler's calls throw; one that throws has changed nothing, except in the case below. Once
///   destruction has begun, setting throws stopped_error.
/// - At options::max_pending a key's timer can still be replaced. A one-shot then takes over the timer of the old
///   one, and both count as one timer. If one of the two recurs, or another thread is replacing or rescheduling the
///   same key, the old timer is cancelled first. If others then take its place, and do not give it back within 0.1
///   s, or memory runs out, the call throws and the key has no timer.
/// - A timer that stop() handed back belongs to the caller of stop(), and may be run by hand, also after this object is
///   destroyed.
/// - Key's hash, equality, copy and move may run under the lock of this object: they must not call the library.
///   Hash and equality must not throw.
/// - Cost: that of the scheduler's call, a look-up, and some locks and allocations.
///
/// The scheduler must outlive it, but may be stopped.
template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>>
class keyed_timers {
 public:
  /// Makes an object in which no key has a timer. Throws std::bad_alloc, and what making a Hash or KeyEqual throws.
  explicit keyed_timers(scheduler& s) : keys_(std::make_shared<keys>(s)) {}
  /// Cancels all timers, and returns when no task set through it is in progress, replaced ones included, and all
  /// callables are destroyed; it does not wait for those on its own stack.
  ~keyed_timers() {
    const auto kept = keys_;
    kept->close();
  }
  keyed_timers(const keyed_timers&) = delete;
  keyed_timers& operator=(const keyed_timers&) = delete;

  /// Runs `work` once, `delay` from now. Replaces the key's timer, if it has one.
  void set_after(Key key, any_duration delay, task work) {
    const call c(keys_, std::move(key));
    c->set_at(*c.entry, c->after(delay), std::move(work));
  }

  /// Runs `work` once, at `due`. Replaces the key's timer.
  void set_at(Key key, any_time_point due, task work) {
    const call c(keys_, std::move(key));
    c->set_at(*c.entry, due, std::move(work));
  }

  /// Runs `work` repeatedly, as `when` says. Replaces the key's timer.
  void set(Key key, const recurrence& when, task work) {
    const call c(keys_, std::move(key));
    c->set(*c.entry, when, std::move(work));
  }

  /// As set_after(), but if the key has a timer it does nothing and returns false.
  bool try_set_after(Key key, any_duration delay, task work) {
    const call c(keys_, std::move(key));
    return c->try_set_at(*c.entry, c->after(delay), std::move(work));
  }

  /// Moves the key's timer, as scheduler::reschedule_after() does. Returns false if the key has none.
  bool reschedule_after(const Key& key, any_duration delay) {
    const call c(keys_, key);
    return c.entry != nullptr && c->reschedule_at(*c.entry, c->after(delay));
  }

  /// Cancels the key's timer, as scheduler::cancel() does. Returns `running` also if the key has no timer, but a task
  /// that was set for it is in progress.
  cancel_result cancel(const Key& key) {
    const call c(keys_, key);
    return c.entry != nullptr ? c->cancel(*c.entry) : cancel_result::gone;
  }

  /// Whether the key has a timer. False inside its own one-shot task.
  bool contains(const Key& key) const { return keys_->has(key); }

  /// The number of keys that have a timer. O(n): visits each.
  std::size_t size() const { return keys_->size(); }

  /// Cancels all timers; tasks in progress continue. A timer that another thread is setting meanwhile may remain.
  void clear() {
    const auto kept = keys_;
    kept->clear();
  }

 private:
  class keys;

  /// A call in progress. Keeps the key's entry, and the keys in case a task destroys this object.
  struct call {
    call(std::shared_ptr<keys> k, Key&& key) : all(std::move(k)), entry(all->find_or_make(std::move(key))) {}
    call(std::shared_ptr<keys> k, const Key& key) : all(std::move(k)), entry(all->find(key)) {}
    ~call() {
      if (entry != nullptr) all->leave(*entry);
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    keys* operator->() const noexcept { return all.get(); }

    const std::shared_ptr<keys> all;
    detail::keyed_entry* const entry;  // null: the key is unknown
  };

  std::shared_ptr<keys> keys_;  // shared with its tasks, which may destroy this object
};

template <class Key, class Hash, class KeyEqual>
class keyed_timers<Key, Hash, KeyEqual>::keys final : public detail::keyed_core {
 public:
  using keyed_core::keyed_core;

  detail::keyed_entry* find_or_make(Key&& key) {
    const std::lock_guard hold(mutex_);
    const auto [found, is_new] = map_.try_emplace(std::move(key));
    found->second.key = &found->first;
    ++found->second.users;
    return &found->second;
  }

  detail::keyed_entry* find(const Key& key) {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return nullptr;
    ++found->second.users;
    return &found->second;
  }

  void leave(detail::keyed_entry& e) noexcept {
    std::unique_lock hold(mutex_);
    leave(e, hold);
  }

  bool has(const Key& key) const {
    const std::lock_guard hold(mutex_);
    const auto found = map_.find(key);
    return found != map_.end() && has_timer(found->second);
  }

  std::size_t size() const {
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    for (const auto& [key, e] : map_)
      if (has_timer(e)) ++count;
    return count;
  }

 private:
  struct entry : detail::keyed_entry {
    const Key* key = nullptr;
  };
  using map = std::unordered_map<Key, entry, Hash, KeyEqual>;

  void leave(detail::keyed_entry& e, std::unique_lock<std::mutex>& hold) noexcept override {
    typename map::node_type gone;
    if (--e.users == 0) gone = map_.extract(*static_cast<entry&>(e).key);
    hold.unlock();  // before a key is destroyed
  }

  map map_;
};

}  // namespace rondo
