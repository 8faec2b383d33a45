// What a dispatcher has on the scheduler's wheel.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include <rondo/executor.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/timer_id.hpp>
#include <rondo/timer_scope.hpp>

#include "durable/dispatcher/held_tasks.hpp"
#include "durable/dispatcher/inbox.hpp"

namespace rondo::durable::detail {

/// All of these jobs run on the driver, whatever executor the scheduler has. They take O(1) and do not use the
/// database.
class wheel_jobs {
 public:
  /// `to` and `held` outlive this object.
  wheel_jobs(scheduler& on, inbox& to, held_tasks& held)
      : link_(std::make_shared<link>(to, held)), claims_(on), runs_(on) {}
  ~wheel_jobs() { stop(); }
  wheel_jobs(const wheel_jobs&) = delete;
  wheel_jobs& operator=(const wheel_jobs&) = delete;

  /// Throws what the scheduling calls throw.
  void start(duration look_every, duration renew_every) {
    claims_.schedule_every(
        look_every, [l = link_] { l->raise(inbox::look); }, inline_);
    runs_.schedule_every(
        renew_every, [l = link_] { l->raise(inbox::renew); }, inline_);
  }

  /// Throws what the scheduling calls throw; then nothing is on the wheel.
  void due_at(time_point due, held_tasks::place p) {
    claims_.schedule_at(
        due, [l = link_, once = std::optional(p)]() mutable { l->came_due(once); }, inline_);
  }

  /// Throws what the scheduling calls throw.
  void retry_turn_after(duration d) {
    retry_ = runs_.schedule_after(
        d, [l = link_] { l->raise(inbox::retry); }, inline_);
  }

  /// Whether that retry is still pending. False if the scheduler has been stopped.
  bool retries() const { return runs_.pending(retry_); }

  /// After this no task becomes due.
  void stop_claiming() {
    link_->close(link_->is_claiming);
    claims_.close();
  }

  /// Whether stop_claiming() has not been called.
  bool claims() const {
    const std::lock_guard hold(link_->mutex);
    return link_->is_claiming;
  }

  /// As stop_claiming(), and no lease is renewed either.
  void stop() {
    stop_claiming();
    link_->close(link_->is_open);
    runs_.close();
  }

 private:
  /// The timers may outlive the dispatcher, and their tasks may even be called: the caller of the scheduler's stop()
  /// gets back the tasks that have not fired.
  struct link {
    link(inbox& i, held_tasks& h) noexcept : to(i), held(h) {}

    void raise(inbox::signal s) {
      const std::lock_guard hold(mutex);
      if (is_open) to.raise(s);
    }

    void came_due(std::optional<held_tasks::place>& once) {
      const std::lock_guard hold(mutex);
      if (!is_claiming || !once) return;
      held.came_due(*once);
      once.reset();
      to.raise(inbox::due);
    }

    void close(bool& what) {
      const std::lock_guard hold(mutex);
      what = false;
    }

    std::mutex mutex;
    inbox& to;
    held_tasks& held;
    bool is_claiming = true, is_open = true;
  };

  std::shared_ptr<link> link_;
  const on inline_{[](job j) { j(); }};
  timer_scope claims_, runs_;
  timer_id retry_;  // used only by the database thread
};

}  // namespace rondo::durable::detail
