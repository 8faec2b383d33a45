// Random programs on virtual time, compared step by step with the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "model/choices.hpp"
#include "model/random_program_text.hpp"
#include "model/random_recurrence.hpp"
#include "model/scheduler_model.hpp"

namespace rondo::test {

/// What a program is about.
struct setting {
  enum class handing { nothing, some_timers, everything };  // to executors

  explicit setting(choices&);

  ns tick, span;  // span: of the time that an advance covers
  std::size_t buckets, max_pending;
  handing hands_over;
  time_point start;
  bool propagates;  // what tasks throw on the driver
};

/// When a program takes no further step.
struct limits {
  time_point end = time_point::max();  // of real time
  /// So many timers the model has looked at: that takes half a second. (The steps after a drain may as many again.) One
  /// program of 300 steps in a hundred gets there, with thousands of periodic timers, all of which run in most steps.
  /// Hardly one of 100 steps does.
  std::uint64_t looks = 200'000'000;
};

/// One program: operations from outside and, at random, from inside the tasks that they make run; inline, or
/// with executors that run, keep, drop and refuse jobs.
class random_program {
 public:
  /// `steps`: about how many there are, if these are not choices that were made before. `trace`: is told what
  /// the program does, in words close to the library's own, before it is done.
  random_program(choices&, std::size_t steps, std::ostream* trace = nullptr, limits = {});

  /// An empty string if all went as the model says.
  std::string run();
  std::uint64_t looks() const { return model_.looks(); }

 private:
  /// What is legal inside a task comes first; the simpler before what is less so.
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
  };
  static constexpr std::size_t acts_inside = 6;

  struct kept_job {
    job call;
    scheduler_model::run what;
  };

  /// A deadline, and how it is asked for.
  struct wish {
    bool relative;
    ns delay, due;
  };

  /// For what is written down meanwhile.
  class deeper {
   public:
    explicit deeper(int& depth) : depth_(depth) { ++depth_; }
    ~deeper() { --depth_; }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;

   private:
    int& depth_;
  };

  // What is compared: random_program_compare.cpp
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
  template <class... Parts>
  void note(const Parts&... parts) {
    if (trace_ == nullptr) return;
    *trace_ << std::string(2 * static_cast<std::size_t>(depth_), ' ');
    (*trace_ << ... << parts) << std::endl;
  }
  void note_setting();
  std::string result_of_scheduling() const;
  std::string describe(const scheduler_model::run&) const;
  std::string describe(std::size_t timer, const firing&) const;

  // What is done from outside and from inside: random_program.cpp
  void steps(std::uint64_t usual);
  bool another_step(std::uint64_t usual);
  void step();
  void act_inside();
  void operate(act);
  void advance();
  void advance_to_next();
  void schedule_once();
  void schedule_recurrence(plan);
  template <class Schedule>
  void schedule(plan, ns due, runs_on, Schedule&&);
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
  std::size_t pick();
  time_point clock_time(ns t) const { return t == never ? time_point::max() : is_.start + duration(t); }
  std::optional<time_point> clock_time(std::optional<ns> t) const {
    return t ? std::optional(clock_time(*t)) : std::nullopt;
  }
  bool is_right() const { return wrong_.empty(); }

  // Tasks and executors: random_program_runs.cpp
  void ran(std::size_t timer, const firing&);
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
  const choices::weights likely_acts_, likely_acts_inside_;
  random_plans plans_;
  scheduler_model model_;
  std::shared_ptr<int> callable_ = std::make_shared<int>(0);
  std::vector<timer_id> ids_;
  std::vector<kept_job> jobs_;
  std::optional<scheduler_model::run> starting_;
  std::optional<scheduler_model::run> to_be_rejected_;  // as on_rejected is to be told
  std::optional<std::size_t> running_;
  std::optional<std::size_t> thrown_;  // by its task, on the way to who drives
  bool driving_ = false;               // the executor has been called by the driver
  bool elsewhere_ = false;             // the driver is on another thread than the run in progress
  bool stop_inside_ = false;
  int inside_left_ = 0;  // runs of this step that may do something
  int depth_ = 0;
  std::uint64_t operations_ = 0;
  std::size_t looked_at_ = 0;
  std::uint64_t begun_ = 0, reported_ = 0, propagated_ = 0, told_of_rejected_ = 0;
  extremes run_time_;
  std::string wrong_;
  manual_timer time_;  // last: its tasks use the rest
};

}  // namespace rondo::test
