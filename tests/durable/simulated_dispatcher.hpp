// A dispatcher of a simulated process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <rondo/durable.hpp>
#include <rondo/scheduler.hpp>

#include "durable/dispatcher/attempt.hpp"
#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/reports.hpp"
#include "durable/dispatcher/held_tasks.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/turns.hpp"
#include "durable/dispatcher/wheel_jobs.hpp"
#include "durable/engine.hpp"

namespace durable_test {

class simulated_dispatcher;

/// Told of the turns of a dispatcher.
class turn_watcher {
 public:
  using turn = rondo::durable::detail::turn;
  using turn_result = rondo::durable::detail::turn_result;

  /// Of the dispatcher.
  struct state {
    bool is_stopping, is_telling;  ///< after stop(); after the last run
    bool has_room;                 ///< for another run
  };

  virtual void sends(const turn& t, const state& now) = 0;
  virtual void took(const turn& t, const turn_result& done) = 0;
  virtual void failed(const turn& t, bool perhaps_done) = 0;

 protected:
  ~turn_watcher() = default;
};

/// A session that notes what its dispatcher asks for, and whether it has been interrupted.
class observed_session final : public rondo::durable::detail::session {
 public:
  using turn = rondo::durable::detail::turn;
  using turn_result = rondo::durable::detail::turn_result;

  /// `of` and `by` outlive this object.
  observed_session(std::unique_ptr<session> inner, const simulated_dispatcher& of, turn_watcher& by)
      : inner_(std::move(inner)), of_(of), by_(by) {}

  turn_result take(const turn& what) override;
  bool wait() override { return inner_->wait(); }
  bool changed() override { return inner_->changed(); }
  rondo::duration look_every() const override { return inner_->look_every(); }
  void interrupt() noexcept override {
    interrupted_ = true;
    inner_->interrupt();
  }

  /// Whether wait() would return.
  enum class woken { no, interrupted, news };
  woken is_woken();
  /// Whether the last turn, or a part of it, is to be repeated.
  bool has_failed() const noexcept { return has_failed_; }
  /// The turn in progress, or null.
  const turn* current() const noexcept { return current_; }

 private:
  struct scoped_turn {
    scoped_turn(observed_session& s, const turn& what) noexcept : of(s) { of.current_ = &what; }
    ~scoped_turn() { of.current_ = nullptr; }
    scoped_turn(const scoped_turn&) = delete;
    scoped_turn& operator=(const scoped_turn&) = delete;
    observed_session& of;
  };

  std::unique_ptr<session> inner_;
  const simulated_dispatcher& of_;
  turn_watcher& by_;
  const turn* current_ = nullptr;
  bool interrupted_ = false;
  bool has_failed_ = false;
};

/// The parts of a dispatcher, put together as dispatcher.cpp does, but without threads: somebody takes their steps, one
/// after the other. Destroying it is a death of its process.
class simulated_dispatcher {
 public:
  using run = rondo::durable::detail::run;
  using place = rondo::durable::detail::begun_runs::place;

  simulated_dispatcher(rondo::scheduler& on, rondo::durable::detail::engine& database,
                       const std::string& owner, const rondo::durable::dispatcher_options& options,
                       const rondo::durable::task_handler& handler, std::uint64_t seed, turn_watcher& by);

  // The database thread

  /// Whether it has something to do.
  bool is_awake(rondo::time_point now);
  /// When it will have, whatever else happens.
  rondo::time_point wakes_at() const noexcept {
    return tell_at_ && phase_ != phase::stopped ? *tell_at_ : rondo::time_point::max();
  }
  /// Precondition: it has something to do.
  void step(rondo::time_point now);
  bool has_stopped() const noexcept { return phase_ == phase::stopped; }
  /// After has_stopped(): whether all was reported.
  bool all_is_told() const noexcept { return turns_.all_is_told(); }

  // The threads that run the handler

  std::optional<place> begin_next() noexcept;
  void execute(place p) const noexcept { attempt_(*p); }
  void end(place p) noexcept;

  // The thread that calls stop()

  void stop() noexcept;
  bool is_stopping() const noexcept { return phase_ != phase::runs; }

  rondo::durable::dispatcher_statistics stats() const { return counters_.snapshot(); }
  /// Tasks claimed and not yet ended.
  std::size_t held() const { return held_.size() + runs_.size(); }
  std::size_t running() const { return runs_.size(); }
  turn_watcher::state state() const { return {is_stopping(), tell_at_.has_value(), runs_.room() != 0}; }
  const rondo::durable::detail::turn* current_turn() const noexcept { return session_.current(); }
  bool has_failed() const noexcept { return session_.has_failed(); }

 private:
  enum class phase { runs, stops, tells, stopped };

  void tell(rondo::time_point now);
  void end_if_idle() noexcept;

  const rondo::durable::dispatcher_options options_;
  const rondo::durable::detail::error_reports errors_;
  rondo::durable::detail::counters counters_;
  observed_session session_;
  rondo::durable::detail::inbox inbox_;
  rondo::durable::detail::held_tasks held_;
  rondo::durable::detail::wheel_jobs wheel_;
  rondo::durable::detail::begun_runs runs_;
  rondo::durable::detail::attempt attempt_;
  rondo::durable::detail::turns turns_;
  phase phase_ = phase::runs;
  bool sleeps_ = false;
  std::size_t in_progress_ = 0;
  std::optional<rondo::time_point> tell_until_, tell_at_;
};

}  // namespace durable_test
