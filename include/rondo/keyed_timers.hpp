// Timers by key: at most one per key; setting a key's timer replaces the previous one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
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
/// - Setting a key's timer, except with try_set_after(), requests the stop of a run of the previous timer that is in
///   progress, as scheduler::cancel() does, even if that run is its last; but a run that sets its own key is not asked.
///   Runs of timers before the previous one are asked only by cancel_and_wait(), clear() and the destructor.
/// - The calls throw what the scheduler's calls throw; a call that throws has changed nothing. Once destruction has
///   begun, setting a timer throws stopped_error.
/// - At options::max_pending a key's timer can still be replaced: the new timer takes the place of the old one. No call
///   that sets a timer waits.
/// - A timer that stop() returned belongs to the caller of stop(), and may be run by hand, even after this object is
///   destroyed.
/// - Key's hash, equality, copy and move may run under the lock of this object: they must not call the library.
///   Hash and equality must not throw.
/// - Cost: the scheduler's call and a look-up under a lock of this object. Replacing a timer that has no options, with a
///   task that is only bytes, such as a lambda that captures pointers and numbers, as the old one, changes these bytes and the
///   deadline in place. A key takes 20 bytes and itself, and four to eight in the table; this memory is used again when keys are
///   forgotten, and kept until the object is destroyed.
/// - It may outlive its scheduler. It treats the scheduler's destruction as a stop().
template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>>
class keyed_timers {
 public:
  /// Creates an object in which no key has a timer. Throws std::bad_alloc, and what constructing a Hash or KeyEqual
  /// throws.
  explicit keyed_timers(scheduler& s) : keys_(std::make_shared<keys>(s)) {}
  /// Cancels all timers, and returns when no task set through this object is in progress, not even a replaced one, and
  /// all callables are destroyed; it does not wait for those on its own stack.
  /// Tasks that may run meanwhile must use a reference to this object: see ~scheduler().
  ~keyed_timers() {
    const auto kept = keys_;
    kept->close();
  }
  keyed_timers(const keyed_timers&) = delete;
  keyed_timers& operator=(const keyed_timers&) = delete;

  ///@{
  /// Runs `work` once, `delay` from now, with the options in `with`. Replaces the key's timer, if it has
  /// one, and inherits none of its options.
  template <detail::schedulable F = task>
  void set_after(Key key, any_duration delay, F&& work,
                 detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), delay, detail::pass_on<F>(work), made_at);
  }
  template <detail::schedulable F = task>
  void set_after(Key key, any_duration delay, F&& work, timer_options with,
                 detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), delay, detail::pass_on<F>(work), made_at, &with);
  }
  ///@}

  ///@{
  /// Runs `work` once, at `due`. Replaces the key's timer.
  template <detail::schedulable F = task>
  void set_at(Key key, any_time_point due, F&& work,
              detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), due, detail::pass_on<F>(work), made_at);
  }
  template <detail::schedulable F = task>
  void set_at(Key key, any_time_point due, F&& work, timer_options with,
              detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), due, detail::pass_on<F>(work), made_at, &with);
  }
  ///@}

  ///@{
  /// Runs `work` repeatedly, as `when` specifies. Replaces the key's timer.
  template <detail::schedulable F = task>
  void set(Key key, const recurrence& when, F&& work,
           detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), when, detail::pass_on<F>(work), made_at);
  }
  template <detail::schedulable F = task>
  void set(Key key, const recurrence& when, F&& work, timer_options with,
           detail::kept_call_site made_at = detail::kept_call_site::here()) {
    set_timer(std::move(key), when, detail::pass_on<F>(work), made_at, &with);
  }
  ///@}

  ///@{
  /// As set_after(), but does nothing and returns false if the key has a timer.
  template <detail::schedulable F = task>
  bool try_set_after(Key key, any_duration delay, F&& work,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return set_timer(std::move(key), delay, detail::pass_on<F>(work), made_at, nullptr, false);
  }
  template <detail::schedulable F = task>
  bool try_set_after(Key key, any_duration delay, F&& work, timer_options with,
                     detail::kept_call_site made_at = detail::kept_call_site::here()) {
    return set_timer(std::move(key), delay, detail::pass_on<F>(work), made_at, &with, false);
  }
  ///@}

  /// Moves the key's timer as scheduler::reschedule_after() does. Returns false if the key has none.
  bool reschedule_after(const Key& key, any_duration delay) {
    const auto kept = keys_;
    detail::keyed_call c(*kept);
    c.due(delay);
    return kept->reschedule(key, c);
  }

  /// Cancels the key's timer as scheduler::cancel() does. Also returns `running` if the key has no timer but a task
  /// that was set for it is in progress.
  cancel_result cancel(const Key& key) {
    const auto kept = keys_;
    return kept->cancel(key);
  }

  /// Cancels the key's timer, and returns when no task that was set for the key is in progress, not even a replaced
  /// one, and their callables are destroyed. Returns what cancel() would return. Called from inside one of the key's
  /// own tasks, even a replaced one, it does not wait. It neither cancels nor waits for timers that are set for the key
  /// during the call. It also does not wait if another thread's call has just cancelled or replaced the key's timer and
  /// is destroying its callable: that callable is gone when the other call returns.
  ///
  /// It deadlocks if two tasks wait for each other in this way, or if it is called while holding a mutex that the task
  /// locks. It needs no memory. Cost: as cancel(), and O(n) for the number of replaced tasks in progress.
  cancel_result cancel_and_wait(const Key& key) {
    const auto kept = keys_;
    return kept->cancel_and_wait(std::addressof(key));
  }

  /// The exact deadline of the run that the key's timer waits for, as scheduler::due() returns it. Returns std::nullopt
  /// if the key has no timer, or its timer waits for no point in time.
  std::optional<time_point> due(const Key& key) const { return keys_->due(key); }

  /// Whether the key has a timer. False inside its own one-shot task.
  bool contains(const Key& key) const { return keys_->has(key); }

  /// The number of keys that have a timer. O(n) for the greatest number of keys that there ever were at once.
  std::size_t size() const { return keys_->size(); }

  /// Cancels all timers; tasks in progress continue, and are asked to stop. A timer that is set during the call, by another
  /// thread or by the destructor of a callable, may remain or be cancelled. O(n) for the greatest number of keys that there
  /// ever were at once.
  void clear() {
    const auto kept = keys_;
    kept->clear();
  }

 private:
  class keys;

  template <class When, class F>
  bool set_timer(Key&& key, const When& when, F&& work, detail::kept_call_site made_at,
                 timer_options* with = nullptr, bool replaces = true) {
    const auto kept = keys_;
    if (!replaces) {
      detail::refuse_empty(work);
      if (kept->has(key)) return false;  // even if no new timer would be accepted
    }
    detail::keyed_call c(*kept, std::forward<F>(work), made_at);
    if (with != nullptr) c.set_options(std::move(*with));
    c.due(when);
    return kept->set(std::move(key), c, replaces);
  }

  std::shared_ptr<keys> keys_;  // shared with the timers and calls, because tasks may destroy this object
};

/// The part of keyed_timers that works under the mutex.
template <class Key, class Hash, class KeyEqual>
class keyed_timers<Key, Hash, KeyEqual>::keys final : public detail::keyed_core {
 public:
  using keyed_core::keyed_core;

  /// If the key has a timer and `replaces` is false, does nothing and returns false.
  bool set(Key&& key, detail::keyed_call& c, bool replaces) {
    forgotten gone(*this);
    const std::lock_guard hold(mutex_);
    const used_key k{*this, table_.find_or_add(std::move(key)), gone};
    if (!replaces && has_timer(k.entry())) return false;
    c.set(k.entry(), k.where, replaces);
    keep_alive();
    return true;
  }

  bool reschedule(const Key& key, detail::keyed_call& c) {
    if (abandoned()) return false;
    const std::lock_guard hold(mutex_);
    const place k = table_.find(key);
    return k != 0 && c.reschedule(entry(k));
  }

  cancel_result cancel(const Key& key, awaited* tasks = nullptr) {
    if (abandoned()) return cancel_result::gone;
    forgotten gone(*this);  // its destructor may wait for the end of `c`
    detail::keyed_call c(*this);
    const std::lock_guard hold(mutex_);
    const place found = table_.find(key);
    if (found == 0) return cancel_result::gone;
    const used_key k{*this, found, gone};
    const cancel_result result = c.cancel(k.entry());
    if (tasks != nullptr) note(*tasks, k.entry(), found);
    return result;
  }

  std::optional<time_point> due(const Key& key) const {
    if (abandoned()) return std::nullopt;
    const std::lock_guard hold(mutex_);
    const place k = table_.find(key);
    return k != 0 ? keyed_core::due(entry(k)) : std::nullopt;
  }

  bool has(const Key& key) const {
    if (abandoned()) return false;
    const std::lock_guard hold(mutex_);
    const place k = table_.find(key);
    return k != 0 && has_timer(entry(k));
  }

  std::size_t size() const {
    if (abandoned()) return 0;
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    for (place k = 1; k < table_.end(); ++k)
      if (has_timer(entry(k))) ++count;
    return count;
  }

 private:
  using typename keyed_core::awaited;
  using table = detail::key_table<Key, Hash, KeyEqual>;
  using place = typename table::number;

  /// A key that was forgotten. The key is destroyed without the lock, and then its place can be used again.
  class forgotten {
   public:
    explicit forgotten(keys& all) noexcept : all_(all) {}
    ~forgotten() {
      if (place_ == 0) return;
      std::destroy_at(key_);
      const std::lock_guard hold(all_.mutex_);
      all_.table_.reuse(place_);
    }
    forgotten(const forgotten&) = delete;
    forgotten& operator=(const forgotten&) = delete;

    /// Precondition: the mutex is locked.
    void forget(place k) noexcept {
      all_.table_.forget(k);
      if constexpr (std::is_trivially_destructible_v<Key>) {
        all_.table_.reuse(k);
      } else {
        place_ = k;
        key_ = &all_.table_.at(k).key;
        kept_ = all_.kept();  // for the key's destructor, which may end all other timers
      }
      if (all_.table_.empty()) kept_ = all_.let_go();
    }

   private:
    keys& all_;
    place place_ = 0;
    Key* key_ = nullptr;  // because the table may grow in the meantime
    std::shared_ptr<detail::keyed_core> kept_;
  };

  /// A key under the lock, which is forgotten at the end if it has no timer then.
  struct used_key {
    keys& all;
    const place where;
    forgotten& gone;

    detail::keyed_entry& entry() const noexcept { return all.table_.at(where).entry; }
    ~used_key() {
      if (entry().unused()) gone.forget(where);
    }
  };

  cancel_result cancel_key(const void* key, awaited& tasks) override {
    return cancel(*static_cast<const Key*>(key), &tasks);
  }

  void left(std::uint32_t tag, timer_id id) noexcept override {
    forgotten gone(*this);
    const std::lock_guard hold(mutex_);
    const used_key k{*this, tag, gone};
    remove(k.entry(), id);
  }

  place end_of_tags() const noexcept override { return table_.end(); }
  const detail::keyed_entry& entry(place k) const noexcept override { return table_.at(k).entry; }

  table table_;
};

}  // namespace rondo
