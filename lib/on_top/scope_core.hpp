// The timers of a scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <rondo/scheduler.hpp>

namespace rondo::detail {

/// Shared by a timer_scope and its tasks. May outlive the scheduler, which only calls of the scope use.
class scope_core : public std::enable_shared_from_this<scope_core> {
 public:
  explicit scope_core(scheduler& s) : scheduler_(s) {}

  /// `schedule` calls the scheduler with the task that it is given.
  template <class Schedule>
  timer_id schedule(task&& work, Schedule&& schedule) {
    if (!work) throw std::invalid_argument("rondo: the task is empty");
    const auto made_at = work.made_at();
    const call in_progress(*this, std::move(work));
    const timer_id id = schedule(task(carrier(shared_from_this(), in_progress.what), made_at));
    if (learn(in_progress.what->second, id)) return id;
    scheduler_.cancel_and_wait(id);
    refuse();
  }

  bool knows(timer_id id) const {
    const std::lock_guard hold(mutex_);
    return known_.contains(id);
  }

  std::size_t pending() const {
    const std::lock_guard hold(mutex_);
    std::size_t count = 0;
    for (const auto& [number, t] : tasks_)
      if (t.known && scheduler_.pending(t.id)) ++count;
    return count;
  }

  void cancel_all() {
    visit_all([this](timer_id id) { scheduler_.cancel(id); });
  }

  void close() {
    {
      const std::lock_guard hold(mutex_);
      closed_ = true;
    }
    cancel_all();  // all before it waits for any, so that nothing starts meanwhile
    visit_all([this](timer_id id) { scheduler_.cancel_and_wait(id); });
  }

  scheduler& target() const noexcept { return scheduler_; }

 private:
  using id_set = std::unordered_set<timer_id>;

  /// A task that was scheduled through the scope. Guarded by the scope's mutex, except `work`, which belongs to the
  /// timer.
  struct scoped_task {
    task work;
    timer_id id;             // once it is known
    bool known = false;      // from the end of the scheduling call, or from its first run, if that is earlier
    bool refused = false;    // the scope was closed before its id was known
    bool ended = false;      // its timer has ended
    bool scheduling = true;  // the scheduling call is in progress
    id_set::node_type place;  // for the set of known ids; made in advance, because learn() must not fail
  };

  /// By number, in the order of scheduling.
  using task_map = std::map<std::uint64_t, scoped_task>;

  /// The task that the scheduler gets: runs the user's task, and reports the end of the timer.
  class carrier {
   public:
    carrier(std::shared_ptr<scope_core> scope, task_map::iterator what) noexcept
        : scope_(std::move(scope)), what_(what) {}
    carrier(carrier&&) noexcept = default;
    carrier& operator=(carrier&&) = delete;
    ~carrier() {
      if (scope_ != nullptr) scope_->end(what_);
    }
    void operator()(const firing& f) { scope_->run(what_->second, f); }

   private:
    std::shared_ptr<scope_core> scope_;
    task_map::iterator what_;
  };

  /// A scheduling call in progress. Keeps the task in the map.
  struct call {
    call(scope_core& s, task&& work) : scope(s), what(s.add()) { what->second.work = std::move(work); }
    ~call() {
      task_map::node_type over;  // destroyed after the lock is released
      const std::lock_guard hold(scope.mutex_);
      what->second.scheduling = false;
      if (what->second.ended) over = scope.tasks_.extract(what);
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

    scope_core& scope;
    const task_map::iterator what;
  };

  [[noreturn]] static void refuse() {
    throw stopped_error("rondo: a timer was scheduled through what is being destroyed, or closed");
  }

  task_map::iterator add() {
    const std::lock_guard hold(mutex_);
    if (closed_) refuse();
    // Capacity for all tasks, known or not, so that learn() cannot fail.
    const std::size_t needed = tasks_.size() + 1;
    if (static_cast<float>(needed) >= static_cast<float>(known_.bucket_count()) * known_.max_load_factor())
      known_.reserve(2 * needed);
    auto place = known_.extract(known_.emplace().first);
    const auto what = tasks_.try_emplace(tasks_.end(), ++last_number_);
    what->second.place = std::move(place);
    return what;
  }

  /// Notes the timer's id, unless it is known. False if the task must not run.
  bool learn(scoped_task& t, timer_id id) {
    const std::lock_guard hold(mutex_);
    if (t.known) return !t.refused;
    t.known = true;
    t.id = id;
    t.refused = closed_;
    if (!t.ended) {
      t.place.value() = id;
      known_.insert(std::move(t.place));
    }
    return !t.refused;
  }

  void run(scoped_task& t, const firing& f) {
    if (f.id != timer_id{} && !learn(t, f.id)) return;  // no id: stop() handed it back, and it is run by hand
    t.work(f);
  }

  void end(task_map::iterator t) noexcept {
    t->second.work.reset();
    task_map::node_type over;  // destroyed after the lock is released
    const std::lock_guard hold(mutex_);
    t->second.ended = true;
    if (t->second.known) t->second.place = known_.extract(t->second.id);
    if (!t->second.scheduling) over = tasks_.extract(t);
  }

  /// Calls do_with(timer_id), without the lock, for all known timers that exist now. Allocates nothing.
  template <class DoWith>
  void visit_all(DoWith&& do_with) {
    std::unique_lock hold(mutex_);
    const std::uint64_t last = last_number_;
    for (auto next = tasks_.begin(); next != tasks_.end() && next->first <= last;) {
      const std::uint64_t number = next->first;
      if (next->second.known) {
        const timer_id id = next->second.id;
        hold.unlock();
        do_with(id);
        hold.lock();
      }
      next = tasks_.upper_bound(number);  // valid also if tasks have ended meanwhile
    }
  }

  scheduler& scheduler_;
  mutable std::mutex mutex_;
  task_map tasks_;
  std::uint64_t last_number_ = 0;
  id_set known_;
  bool closed_ = false;
};

}  // namespace rondo::detail
