// Timers by name: at most one for each key, and setting a key's timer replaces the one it had.
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

/// Time-outs of sessions, delayed writes of files, debounced events: what is looked up by a key and set again
/// and again.
///
///     rondo::keyed_timers<std::string> saves{scheduler};
///     saves.set_after(path, 300ms, [path] { save(path); });   // 300 ms after the last of many calls
///
/// - Threads: all members are legal from any thread and from inside its tasks, which may also set their own
///   key anew, and destroy this object.
/// - A key *has* a timer while that is pending: from the call that sets it until a one-shot's task starts (a
///   recurring one's last run). Without a timer and without a task in progress nothing is kept of a key.
/// - *Replacing*: once the call has returned, the old task does not start any more (if it had before, it may be
///   in progress) and its callable is destroyed. The new one counts as scheduled, the old as cancelled; or, if
///   it fell due at that very moment, as a run, which does not call the task.
/// - A call that throws has changed nothing. It throws what the scheduler's does. Once destruction has begun:
///   stopped_error.
/// - At options::max_pending a key's timer can be replaced as well. A one-shot then takes over the timer of the
///   old one, which is counted once. If one of the two recurs, or another thread is replacing or rescheduling
///   the same key, the old one has to be cancelled first. Should others use up the place that this frees, and
///   not give it back within 0.1 s, or memory run out, the call throws and the key has no timer.
/// - What stop() hands back belongs to whoever has it, and may be run by hand also when this object is gone.
/// - Key's hash, equality, copy and move may run under the lock of this object: they must not call the
///   library. Hash and equality must not throw.
/// - Cost: that of the scheduler's own call, a look-up and some locks and allocations.
///
/// The scheduler must outlive it, but may be stopped.
template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>>
class keyed_timers {
 public:
  /// No key has a timer yet. Throws std::bad_alloc, and what making a Hash or KeyEqual throws.
  explicit keyed_timers(scheduler& s) : keys_(std::make_shared<keys>(s)) {}
  /// Cancels all, and returns when no task that was set through it is in progress, replaced ones included, and
  /// all callables are destroyed; it does not wait for those that lie on its own stack.
  ~keyed_timers() {
    const auto kept = keys_;
    kept->close();
  }
  keyed_timers(const keyed_timers&) = delete;
  keyed_timers& operator=(const keyed_timers&) = delete;

  /// The key's task is to run once, `delay` from now. Replaces what the key had.
  void set_after(Key key, any_duration delay, task work) {
    const call c(keys_, std::move(key));
    c->set_at(*c.entry, c->after(delay), std::move(work));
  }

  /// The same, at `due`.
  void set_at(Key key, any_time_point due, task work) {
    const call c(keys_, std::move(key));
    c->set_at(*c.entry, due, std::move(work));
  }

  /// The same, again and again, as `when` says.
  void set(Key key, const recurrence& when, task work) {
    const call c(keys_, std::move(key));
    c->set(*c.entry, when, std::move(work));
  }

  /// As set_after(), but false, and nothing done, if the key has a timer.
  bool try_set_after(Key key, any_duration delay, task work) {
    const call c(keys_, std::move(key));
    return c->try_set_at(*c.entry, c->after(delay), std::move(work));
  }

  /// Moves the key's timer, as scheduler::reschedule_after() does. False if it has none.
  bool reschedule_after(const Key& key, any_duration delay) {
    const call c(keys_, key);
    return c.entry != nullptr && c->reschedule_at(*c.entry, c->after(delay));
  }

  /// As scheduler::cancel(). `running` also if the key has no timer but a task that was set for it is still in
  /// progress.
  cancel_result cancel(const Key& key) {
    const call c(keys_, key);
    return c.entry != nullptr ? c->cancel(*c.entry) : cancel_result::gone;
  }

  /// Whether the key has a timer. False inside its own one-shot task.
  bool contains(const Key& key) const { return keys_->has(key); }

  /// How many keys have a timer. It looks at each: O(n).
  std::size_t size() const { return keys_->size(); }

  /// Cancels all; tasks in progress go on. What another thread is setting meanwhile may be left.
  void clear() {
    const auto kept = keys_;
    kept->clear();
  }

 private:
  class keys;

  /// A call in progress. Keeps the key's entry, and what the call needs should a task destroy this object.
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
    detail::keyed_entry* const entry;  // null: there is nothing of the key
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
