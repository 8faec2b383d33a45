// Timers by key: at most one for each key; setting a key's timer replaces the previous one.
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

/// Timers that are looked up by a key and re-armed often: session time-outs, delayed writes, debounced events.
///
///     rondo::keyed_timers<std::string> saves{scheduler};
///     saves.set_after(path, 300ms, [path] { save(path); });   // 300 ms after the last of many calls
///
/// - Threads: all members may be called from any thread and from inside its tasks, which may also re-arm their own key
///   and destroy this object.
/// - A key *has* a timer while that is pending: from the call that sets it until its task starts (for a recurring
///   timer: its last run). A key without a timer and without a task in progress is forgotten.
/// - *Replacing* is one step: at any time the key has either the old timer or the new one. After the call has returned,
///   the old task does not start (one that had started may be in progress), and its callable is destroyed, unless it is
///   running. The new timer counts as scheduled, the old one as cancelled.
/// - Calls throw what the scheduler's calls throw; one that throws has changed nothing. Once destruction has begun,
///   setting throws stopped_error.
/// - At options::max_pending a key's timer can still be replaced: the new one gets its place. No call waits for a place.
/// - A timer that stop() handed back belongs to the caller of stop(), and may be run by hand, also after this object is
///   destroyed.
/// - Key's hash, equality, copy and move may run under the lock of this object: they must not call the library.
///   Hash and equality must not throw.
/// - Cost: that of the scheduler's call, a look-up under a lock of this object, and, for a key that has no timer, the
///   allocation of its place in the map. A timer takes no other memory than through the scheduler.
/// - It may outlive its scheduler, whose end it takes for a stop().
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

  ///@{
  /// Runs `work` once, `delay` from now, with the executor and the name that `with` gives it. Replaces the key's timer, if
  /// it has one, and inherits none of its options.
  void set_after(Key key, any_duration delay, task work) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work));
    c.due_after(delay);
    kept->set(std::move(key), c);
  }
  void set_after(Key key, any_duration delay, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work));
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
    detail::keyed_call c(*kept, std::move(work));
    c.due_at(due);
    kept->set(std::move(key), c);
  }
  void set_at(Key key, any_time_point due, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work));
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
  /// Runs `work` repeatedly, as `when` says. Replaces the key's timer.
  void set(Key key, const recurrence& when, task work) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work));
    c.due_as(when);
    kept->set(std::move(key), c);
  }
  void set(Key key, const recurrence& when, task work, timer_options with) {
    const auto kept = keys_;
    detail::keyed_call c(*kept, std::move(work));
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
  /// As set_after(), but if the key has a timer it does nothing and returns false.
  bool try_set_after(Key key, any_duration delay, task work) {
    if (!work) detail::refuse_empty_task();
    const auto kept = keys_;
    if (kept->has(key)) return false;  // also when no new timer is taken any more
    detail::keyed_call c(*kept, std::move(work));
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  bool try_set_after(Key key, any_duration delay, task work, timer_options with) {
    if (!work) detail::refuse_empty_task();
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::move(work));
    c.set_options(std::move(with));
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  template <detail::new_callable F>
  bool try_set_after(Key key, any_duration delay, F&& work,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::refuse_null(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  template <detail::new_callable F>
  bool try_set_after(Key key, any_duration delay, F&& work, timer_options with,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    detail::refuse_null(work);
    const auto kept = keys_;
    if (kept->has(key)) return false;
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    c.set_options(std::move(with));
    c.due_after(delay);
    return kept->try_set(std::move(key), c);
  }
  ///@}

  /// Moves the key's timer, as scheduler::reschedule_after() does. Returns false if the key has none.
  bool reschedule_after(const Key& key, any_duration delay) {
    const auto kept = keys_;
    detail::keyed_call c(*kept);
    c.due_after(delay);
    return kept->reschedule(key, c);
  }

  /// Cancels the key's timer, as scheduler::cancel() does. Returns `running` also if the key has no timer, but a task
  /// that was set for it is in progress.
  cancel_result cancel(const Key& key) {
    const auto kept = keys_;
    typename keys::table::forgotten gone;  // outlives the call: see keys::cancel()
    detail::keyed_call c(*kept);
    return kept->cancel(key, c, gone);
  }

  /// Cancels the key's timer, and returns when no task that was set for the key is in progress, replaced ones included,
  /// and their callables are destroyed. Returns what cancel() would. Called from inside one of the key's own tasks, a
  /// replaced one included, it does not wait. It neither cancels nor waits for what is set for the key meanwhile. Nor does
  /// it wait while another thread's call, which has just cancelled or replaced the key's timer, destroys the callable of
  /// that: the callable is gone when that call returns.
  ///
  /// Two tasks that wait for each other in this way deadlock, and so does a call under a mutex that the task locks.
  /// Needs no memory. Cost: that of cancel(); while a replaced task of the key is in progress O(n): visits each timer.
  cancel_result cancel_and_wait(const Key& key) {
    const auto kept = keys_;
    return kept->cancel_and_wait(key);
  }

  /// The exact deadline of the run that the key's timer waits for, as scheduler::due() returns it. None if the key has no
  /// timer, or its timer waits for no moment.
  std::optional<time_point> due(const Key& key) const { return keys_->due(key); }

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

  std::shared_ptr<keys> keys_;  // shared with its timers and calls, as tasks may destroy this object
};

/// What calls of keyed_timers do under the mutex.
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

  /// `gone` gets the key if it is forgotten: to be destroyed without the lock, and when the call is over, as its
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

  /// A key, added if it is unknown, and the lock. If no timer has come of it, it is forgotten.
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
