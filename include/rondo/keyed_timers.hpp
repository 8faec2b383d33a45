// Timers by key: at most one per key; setting a key's timer replaces the previous one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <rondo/call_site.hpp>
#include <rondo/detail/key_table.hpp>
#include <rondo/detail/keyed_core.hpp>
#include <rondo/executor.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// Timers that are looked up by a key and re-armed often: session timeouts, delayed writes, debounced events.
///
///     rondo::keyed_timers<std::string> saves{scheduler};
///     saves.set_after(path, 300ms, [path] { save(path); });   // 300 ms after the last of many calls
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also re-arm their own key
///   and destroy this object.
/// - A key *has* a timer while that timer is pending: from the call that sets it until its task starts (for a periodic
///   timer, until its last run starts). A key without a timer and without a task in progress is forgotten.
/// - *Replacing* is a single step: at any time the key has either the old timer or the new one. After the call has
///   returned, the old task does not start (if it had already started, it may be in progress), and its callable is
///   destroyed unless it is running. The new timer counts as scheduled, the old one as cancelled.
/// - The calls throw what the scheduler's calls throw; a call that throws has changed nothing. Once destruction has
///   begun, setting a timer throws stopped_error.
/// - At options::max_pending a key's timer can still be replaced: the new timer takes the place of the old one. No call
///   waits for a place.
/// - A timer that stop() returned belongs to the caller of stop(), and may be run by hand, even after this object is
///   destroyed.
/// - Key's hash, equality, copy and move may run under the lock of this object: they must not call the library.
///   Hash and equality must not throw.
/// - Cost: the scheduler's call, a look-up under a lock of this object and, for a key that has no timer, the allocation
///   of its place in the map. Apart from that, a timer takes no more memory than without a key.
/// - It may outlive its scheduler. It treats the scheduler's destruction as a stop().
template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>>
class keyed_timers {
 public:
  /// Creates an object in which no key has a timer. Throws std::bad_alloc, and what constructing a Hash or KeyEqual
  /// throws.
  explicit keyed_timers(scheduler& s) : keys_(std::make_shared<keys>(s)) {}
  /// Cancels all timers, and returns when no task set through this object is in progress, not even a replaced one, and
  /// all callables are destroyed; it does not wait for those on its own stack.
  ~keyed_timers() {
    const auto kept = keys_;
    kept->close();
  }
  keyed_timers(const keyed_timers&) = delete;
  keyed_timers& operator=(const keyed_timers&) = delete;

  ///@{
  /// Runs `work` once, `delay` from now, with the executor and the name in `with`. Replaces the key's timer, if it has
  /// one, and inherits none of its options.
  void set_after(Key key, any_duration delay, task work) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.due_after(delay);
    kept->set(std::move(key), c);
  }
  void set_after(Key key, any_duration delay, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.set_options(std::move(with));
    c.due_after(delay);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set_after(Key key, any_duration delay, F&& work,
                 detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.due_after(delay);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set_after(Key key, any_duration delay, F&& work, timer_options with,
                 detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.set_options(std::move(with));
    c.due_after(delay);
    kept->set(std::move(key), c);
  }
  ///@}

  ///@{
  /// Runs `work` once, at `due`. Replaces the key's timer.
  void set_at(Key key, any_time_point due, task work) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.due_at(due);
    kept->set(std::move(key), c);
  }
  void set_at(Key key, any_time_point due, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.set_options(std::move(with));
    c.due_at(due);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set_at(Key key, any_time_point due, F&& work,
              detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.due_at(due);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set_at(Key key, any_time_point due, F&& work, timer_options with,
              detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.set_options(std::move(with));
    c.due_at(due);
    kept->set(std::move(key), c);
  }
  ///@}

  ///@{
  /// Runs `work` repeatedly, as `when` specifies. Replaces the key's timer.
  void set(Key key, const recurrence& when, task work) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.due_as(when);
    kept->set(std::move(key), c);
  }
  void set(Key key, const recurrence& when, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.set_options(std::move(with));
    c.due_as(when);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set(Key key, const recurrence& when, F&& work,
           detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.due_as(when);
    kept->set(std::move(key), c);
  }
  template <detail::new_callable F>
  void set(Key key, const recurrence& when, F&& work, timer_options with,
           detail::kept_call_site made_at = detail::kept_call_site::here()) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.set_options(std::move(with));
    c.due_as(when);
    kept->set(std::move(key), c);
  }
  ///@}

  ///@{
  /// As set_after(), but does nothing and returns false if the key has a timer.
  bool try_set_after(Key key, any_duration delay, task work) {
    detail::refuse_empty(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;  // even if no new timer would be accepted
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  bool try_set_after(Key key, any_duration delay, task work, timer_options with) {
    detail::refuse_empty(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::move(work), detail::kept_call_site::none());
    c.set_options(std::move(with));
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  template <detail::new_callable F>
  bool try_set_after(Key key, any_duration delay, F&& work,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::refuse_empty(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  template <detail::new_callable F>
  bool try_set_after(Key key, any_duration delay, F&& work, timer_options with,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::refuse_empty(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.set_options(std::move(with));
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  ///@}

  /// Moves the key's timer as scheduler::reschedule_after() does. Returns false if the key has none.
  bool reschedule_after(const Key& key, any_duration delay) {
    const auto kept = keys_;
    detail::keyed_call c(*kept);
    c.due_after(delay);
    return kept->reschedule(key, c);
  }

  /// Cancels the key's timer as scheduler::cancel() does. Also returns `running` if the key has no timer but a task
  /// that was set for it is in progress.
  cancel_result cancel(const Key& key) {
    const auto kept = keys_;
    typename keys::table::forgotten gone;  // outlives the call: see keys::cancel()
    detail::keyed_call c(*kept);
    return kept->cancel(key, c, gone);
  }

  /// Cancels the key's timer, and returns when no task that was set for the key is in progress, not even a replaced
  /// one, and their callables are destroyed. Returns what cancel() would return. Called from inside one of the key's
  /// own tasks, even a replaced one, it does not wait. It neither cancels nor waits for timers that are set for the key
  /// during the call. It also does not wait if another thread's call has just cancelled or replaced the key's timer and
  /// is destroying its callable: that callable is gone when the other call returns.
  ///
  /// It deadlocks if two tasks wait for each other in this way, or if it is called while holding a mutex that the task
  /// locks. It needs no memory. Cost: as cancel(); O(n) while a replaced task of the key is in progress, because it
  /// visits each timer.
  cancel_result cancel_and_wait(const Key& key) {
    const auto kept = keys_;
    return kept->cancel_and_wait(key);
  }

  /// The exact deadline of the run that the key's timer waits for, as scheduler::due() returns it. Returns std::nullopt
  /// if the key has no timer, or its timer waits for no point in time.
  std::optional<time_point> due(const Key& key) const { return keys_->due(key); }

  /// Whether the key has a timer. False inside its own one-shot task.
  bool contains(const Key& key) const { return keys_->has(key); }

  /// The number of keys that have a timer. O(n): visits each key.
  std::size_t size() const { return keys_->size(); }

  /// Cancels all timers; tasks in progress continue. A timer that another thread sets during the call may remain.
  void clear() {
    const auto kept = keys_;
    kept->clear();
  }

 private:
  class keys;

  std::shared_ptr<keys> keys_;  // shared with the timers and calls, because tasks may destroy this object
};

/// The part of keyed_timers that works under the mutex.
template <class Key, class Hash, class KeyEqual>
class keyed_timers<Key, Hash, KeyEqual>::keys final : public detail::keyed_core {
 public:
  using table = detail::key_table<Key, Hash, KeyEqual>;
  using keyed_core::keyed_core;

  void set(Key&& key, detail::keyed_call& c) {
    const used_key k(*this, std::move(key));
    c.set(k->entry, k.get());
  }

  bool try_set(Key&& key, detail::keyed_call& c) {
    const used_key k(*this, std::move(key));
    if (has_timer(k->entry)) return false;
    c.set(k->entry, k.get());
    return true;
  }

  bool reschedule(const Key& key, detail::keyed_call& c) {
    const std::lock_guard hold(mutex_);
    const auto* const k = table_.find(key);
    return k != nullptr && c.reschedule(k->entry);
  }

  /// If the key is forgotten, it is moved to `gone`, to be destroyed without the lock and after the call is over: its
  /// destructor may wait for that.
  cancel_result cancel(const Key& key, detail::keyed_call& c, typename table::forgotten& gone) {
    const std::lock_guard hold(mutex_);
    auto* const k = table_.find(key);
    if (k == nullptr) return cancel_result::gone;
    const cancel_result result = c.cancel(k->entry);
    if (k->entry.unused()) gone = table_.forget(*k);
    return result;
  }

  cancel_result cancel_and_wait(const Key& key) {
    detail::keyed_wait tasks(*this);
    cancel_result result = cancel_result::gone;
    {
      typename table::forgotten gone;
      detail::keyed_call c(*this);
      const std::lock_guard hold(mutex_);
      auto* const k = table_.find(key);
      if (k == nullptr) return cancel_result::gone;
      result = c.cancel(k->entry);
      if (k->entry.unused())
        gone = table_.forget(*k);
      else
        tasks.note(k->entry, k);
    }
    tasks.wait();
    return result;
  }

  std::optional<time_point> due(const Key& key) const {
    const std::lock_guard hold(mutex_);
    const auto* const k = table_.find(key);
    return k != nullptr ? keyed_core::due(k->entry) : std::nullopt;
  }

  bool has(const Key& key) const {
    const std::lock_guard hold(mutex_);
    const auto* const k = table_.find(key);
    return k != nullptr && has_timer(k->entry);
  }

  std::size_t size() const {
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    table_.for_each([&](const detail::keyed_entry& e) {
      if (has_timer(e)) ++count;
    });
    return count;
  }

 private:
  using node = typename table::node;

  /// A key, added if it is unknown, and the lock. The destructor forgets the key if no timer was set for it.
  class used_key {
   public:
    used_key(keys& all, Key&& key)
        : all_(all), hold_(all.mutex_), node_(all.table_.find_or_add(std::move(key))) {}
    ~used_key() {
      typename table::forgotten gone;  // destroyed without the lock
      if (node_.entry.unused()) gone = all_.table_.forget(node_);
      hold_.unlock();
    }
    used_key(const used_key&) = delete;
    used_key& operator=(const used_key&) = delete;
    node* get() const noexcept { return &node_; }
    node* operator->() const noexcept { return &node_; }

   private:
    keys& all_;
    std::unique_lock<std::mutex> hold_;
    node& node_;
  };

  void left(void* tag, timer_id id) noexcept override {
    typename table::forgotten gone;  // destroyed without the lock
    const std::lock_guard hold(mutex_);
    node& n = *static_cast<node*>(tag);
    n.entry.remove(id);
    if (n.entry.unused()) gone = table_.forget(n);
  }

  table table_;
};

}  // namespace rondo
