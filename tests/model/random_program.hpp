// Random programs on virtual time, compared step by step with the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer_scope.hpp>

#include "model/choices.hpp"
#include "model/nap.hpp"
#include "model/owners_model.hpp"
#include "model/random_program_text.hpp"
#include "model/random_recurrence.hpp"
#include "model/scheduler_model.hpp"

namespace rondo::test {

/// The settings of a program.
struct setting {
  enum class handing { nothing, some_timers, everything };  // to executors

  explicit setting(choices&);

  ns tick, span;  // span: the longest time that an advance covers
  std::size_t buckets, max_pending;
  handing hands_over;
  time_point start;
  bool propagates;  // whether exceptions of tasks on the driver leave the pass
  bool has_owners;  // keyed timers, a scope, and coroutines that sleep
};

/// When a program takes no further step.
struct limits {
  time_point end = time_point::max();  // of real time
  /// How many timers the model may examine, which takes half a second. (The steps after a drain may examine as many
  /// again.) About 1 % of the programs of 300 steps reach this limit, with thousands of periodic timers that all run in
  /// most steps. Programs of 100 steps rarely do.
  std::uint64_t looks = 200'000'000;
};

/// One program: operations from outside and, at random, from inside the tasks that run as a result. Tasks run inline,
/// or on executors that run, keep, drop and refuse jobs.
class random_program {
 public:
  /// `steps`: the approximate number of steps, unless the choices are replayed. `trace` gets each thing that the
  /// program does before it is done, in words close to the library's own.
  random_program(choices&, std::size_t steps, std::ostream* trace = nullptr, limits = {});

  /// Returns what went wrong, or "" if all went as the model says.
  std::string run();
  std::uint64_t looks() const { return model_.looks(); }

 private:
  /// Acts that are legal inside a task come first, and simpler acts before less simple ones.
  enum class act {
    schedule,
    cancel,
    reschedule,
    elapse,
    schedule_every,
    schedule_recurrence,
    advance,
    advance_to_next,
    run_a_job,
    drop_a_job,
    of_owners,  // the last one also inside
  };
  static constexpr std::size_t acts_inside = 6;

  /// What owners of timers do, all of it legal inside a task. Again, simpler acts come first.
  enum class owners_act {
    set,
    schedule_in_scope,
    sleep,
    cancel_key,
    request_stop,
    cancel_in_scope,
    try_set,
    reschedule_key,
    reschedule_in_scope,
    set_recurrence,
    schedule_recurrence_in_scope,
    abandon_sleep,
    clear_keys,
    cancel_scope,
    close_scope,
    renew_keys,
    renew_scope,
  };

  /// Why a scheduling call is refused.
  enum class refusal { none, stopped, full };

  struct run_in_progress {
    std::size_t timer;
    nap_stopper::token asked;
  };
  struct kept_job {
    job call;
    scheduler_model::run what;
  };

  /// A deadline, and how it is requested.
  struct wish {
    bool relative;
    ns delay, due;
  };

  /// Indents the trace during its lifetime.
  class deeper {
   public:
    explicit deeper(int& depth) : depth_(depth) { ++depth_; }
    ~deeper() { --depth_; }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;

   private:
    int& depth_;
  };

  // Comparing: random_program_compare.cpp
  void fail(const std::string& what);
  void expect(bool right, const char* what);
  template <class Found, class Expected>
  void expect_same(const Found& found, const Expected& expected, const char* what) {
    if (found != expected)
      fail(std::string(what) + ": " + text_of(found) + "; the model says " + text_of(expected));
  }
  void expect_close(const histogram&, const extremes&, const char* what);
  void compare();
  void compare_list();
  void compare_stats();
  void compare_owners();
  template <class... Parts>
  void note(const Parts&... parts) {
    if (trace_ == nullptr) return;
    *trace_ << std::string(2 * static_cast<std::size_t>(depth_), ' ');
    (*trace_ << ... << parts) << std::endl;
  }
  void note_setting();
  std::string result_of_scheduling(refusal) const;
  std::string describe(const scheduler_model::run&) const;
  std::string describe(std::size_t timer, const firing&) const;

  // Operations from outside and from inside: random_program.cpp
  void steps(std::uint64_t usual);
  bool another_step(std::uint64_t usual);
  void step();
  void act_inside();
  void act_once_inside();
  void operate(act);
  void advance();
  void advance_to_next();
  void schedule_once(timer_scope* in = nullptr);
  void schedule_recurrence(plan, timer_scope* in = nullptr);
  void schedule(plan, ns due, runs_on, refusal, const std::function<timer_id(task)>& call);
  refusal refused(const timer_scope* in = nullptr) const;
  void cancel();
  void reschedule();
  void move(std::size_t timer, const wish&);
  void elapse();
  void finish();
  void drain();
  void stop();
  ns passing(ns usual);
  ns delay();
  wish some_wish();
  runs_on some_place();
  timer_options some_options(runs_on);
  ns slack_of(std::size_t timer) const;
  std::size_t pick(std::size_t count);
  std::size_t pick() { return ids_.size() - 1 - pick(ids_.size()); }
  time_point clock_time(ns t) const { return t == never ? time_point::max() : is_.start + duration(t); }
  std::optional<time_point> clock_time(std::optional<ns> t) const {
    return t ? std::optional(clock_time(*t)) : std::nullopt;
  }
  bool is_right() const { return wrong_.empty(); }

  // Owners of timers: random_program_owners.cpp
  void operate_owners();
  void operate_keys(owners_act);
  void operate_scope(owners_act);
  void set(plan, bool replaces = true);
  std::string set_timer(std::size_t key, const plan&, const wish&, bool replaces) const;
  bool call_set(std::size_t key, const plan&, const wish&, bool replaces, task, timer_options);
  void cancel_key();
  void reschedule_key();
  void cancel_in_scope();
  void reschedule_in_scope();
  void renew_keys();
  void renew_scope();
  bool waits_for_itself(bool running) const { return elsewhere_ && running; }
  timer_id new_id();
  std::string name(std::size_t timer) const { return naps_.contains(timer) ? "" : name_of(timer); }

  // Coroutines that sleep: random_program_naps.cpp
  void sleep();
  nap take_nap(std::size_t timer, wish, nap_stopper::token);
  void nap_ended(std::size_t timer, nap_end);
  void woke(std::size_t timer);
  void request_stop();
  void abandon_sleep();

  // Tasks and executors: random_program_runs.cpp
  bool owns_something(std::size_t timer) const;
  task work_of(std::size_t timer);
  void ran(std::size_t timer, const firing&, nap_stopper::token);
  std::optional<scheduler_model::run> starting(std::size_t timer);
  bool act_as(const scheduler_model::run&, bool may_throw);
  void has_thrown(std::size_t timer);
  void drive_elsewhere();
  void take(job, std::optional<std::size_t> owner);
  void run_a_job();
  void call(kept_job);
  void drop_a_job();
  void rejected(const firing&);
  kept_job take_one();

  choices& choices_;
  const std::uint64_t usual_steps_;
  std::ostream* const trace_;
  const limits most_;
  const setting is_;
  const choices::weights likely_acts_, likely_acts_inside_, likely_owners_acts_;
  random_plans plans_;
  scheduler_model model_;
  std::shared_ptr<int> callable_ = std::make_shared<int>(0);
  std::vector<timer_id> ids_;
  std::vector<kept_job> jobs_;
  std::optional<scheduler_model::run> starting_;
  std::optional<scheduler_model::run> to_be_rejected_;  // what on_rejected should report
  std::optional<std::size_t> running_;
  std::vector<run_in_progress> in_progress_;  // the innermost last
  std::vector<std::size_t> inside_;           // the timers whose runs are on this thread's stack
  std::optional<std::size_t> thrown_;         // by its task, on the way to the driving caller
  bool driving_ = false;                      // the driver is calling the executor
  bool elsewhere_ = false;                    // the driver is on another thread than the run in progress
  bool stop_inside_ = false;
  int inside_left_ = 0;  // how many more runs of this step may do something
  int depth_ = 0;
  std::uint64_t operations_ = 0;
  std::size_t looked_at_ = 0;
  std::uint64_t begun_ = 0, reported_ = 0, propagated_ = 0, told_of_rejected_ = 0;
  extremes run_time_;
  std::string wrong_;
  keyed_model keyed_{model_};
  scope_model scoped_{model_};
  std::map<std::size_t, sleeper> naps_;  // by timer
  std::optional<nap_end> nap_ends_;      // how the call in progress is to end a nap
  manual_timer time_;                    // the last one whose tasks use the others
  std::optional<keyed_timers<std::size_t>> keys_;
  std::optional<timer_scope> scope_;
};

}  // namespace rondo::test
