// What happens in tasks and on executors.
#include <thread>
#include <utility>

#include "model/random_program.hpp"

namespace rondo::test {

bool random_program::owns_something(std::size_t n) const { return n % 4 >= 2 || naps_.contains(n); }

/// Half of the tasks are only bytes. Half of the others can be interrupted, if the standard library can do that.
task random_program::work_of(std::size_t n) {
  if (!owns_something(n)) return [this, n](const firing& f) { ran(n, f, {}); };
#ifdef __cpp_lib_jthread
  if (n % 4 == 3)
    return
        [this, n, alive = callable_](const firing& f, std::stop_token asked) { ran(n, f, std::move(asked)); };
#endif
  return [this, n, alive = callable_](const firing& f) { ran(n, f, {}); };
}

/// Called by each task.
void random_program::ran(std::size_t n, const firing& f, nap_stopper::token asked) {
  if (!is_right()) return;
  const auto expected = starting(n);
  if (!expected) return fail("nothing should have run, but this did: " + describe(n, f));
  const bool right = expected->timer == n && f.id == ids_[n] && f.due == clock_time(expected->due) &&
                     f.lateness == duration(expected->lateness) && f.run == expected->number &&
                     f.missed == expected->missed && f.left == expected->to_come && f.name == name(n);
  if (!right) return fail("what should have run: " + describe(*expected) + "; what ran: " + describe(n, f));
  in_progress_.push_back({n, std::move(asked)});
  inside_.push_back(n);
  const bool throws = act_as(*expected, true);
  inside_.pop_back();
  in_progress_.pop_back();
  if (!throws) return;
  if (is_.propagates && model_.where(n) == runs_on::driver) {
    thrown_ = n;
    ++propagated_;
    model_.leave();
  }
  throw n;
}

/// The run that should be starting now that one of timer `n` does.
std::optional<scheduler_model::run> random_program::starting(std::size_t n) {
  if (model_.where(n) == runs_on::driver) {
    ++begun_;
    starting_ = model_.next_run();
  }
  return std::exchange(starting_, std::nullopt);
}

/// What happens in a run. Returns whether it is to throw.
bool random_program::act_as(const scheduler_model::run& r, bool may_throw) {
  note("runs: ", describe(r));
  const ns began = model_.now();
  const auto outer = std::exchange(running_, r.timer);
  bool throws = false;
  {
    const deeper here(depth_);
    compare();
    act_inside();
    compare();
    throws = may_throw && is_right() && choices_.one_in(6);
    if (throws) note("throw ", r.timer);
  }
  running_ = outer;
  run_time_.add(model_.now() - began);
  model_.end(r.timer, throws);
  return throws;
}

/// The exception of the task has reached the thread that drives.
void random_program::has_thrown(std::size_t n) {
  note("thrown by t", n);
  expect(std::exchange(thrown_, std::nullopt) == n, "the wrong exception, or one of a task on an executor");
}

/// The driver continues while a job is running, perhaps up to the next run of the same timer.
void random_program::drive_elsewhere() {
  if (choices_.one_in(2)) move(*running_, some_wish());
  note("on another thread:");
  const deeper here(depth_);
  elsewhere_ = true;
  const auto inside = std::exchange(inside_, {});
  std::thread([this] { advance(); }).join();
  inside_ = inside;
  elsewhere_ = false;
}

/// Called by the scheduler's executor, or by the one of timer `owner`.
void random_program::take(job j, std::optional<std::size_t> owner) {
  if (!is_right()) return;
  ++begun_;
  auto expected = model_.next_run();
  if (!expected) return fail("nothing should have been submitted");
  const bool own = model_.where(expected->timer) == runs_on::own_executor;
  if (owner != (own ? std::optional(expected->timer) : std::nullopt)) return fail("another executor's job");
  note(own ? "its own executor" : "the executor", " is handed ", describe(*expected));
  enum class reaction { run, keep, drop, refuse, keep_and_refuse };
  static constexpr const char* notes[] = {"runs it", "keeps it", "drops it", "throws", "keeps it and throws"};
  const auto what = reaction(choices_.weighted({2, 4, 2, 1, 1}));
  const bool refuses = what == reaction::refuse || what == reaction::keep_and_refuse;
  const deeper here(depth_);
  note(notes[static_cast<std::size_t>(what)]);
  if (what == reaction::run) {
    const bool outer = std::exchange(driving_, true);
    call({std::move(j), *expected});
    driving_ = outer;
  } else if (what == reaction::keep || what == reaction::keep_and_refuse) {
    jobs_.push_back({std::move(j), *expected});
  }
  if (refuses)
    model_.refuse(*expected);
  else if (what == reaction::drop && model_.drop(*expected))
    to_be_rejected_ = *expected;  // once this call has returned
  if (refuses) throw what;
}

void random_program::run_a_job() {
  if (jobs_.empty()) return;
  kept_job j = take_one();
  note("run the job of ", describe(j.what));
  const deeper here(depth_);
  call(std::move(j));
}

void random_program::call(kept_job j) {
  starting_ = model_.start(j.what);
  j.call();
  expect(!starting_, "a job did not start");
}

void random_program::drop_a_job() {
  if (jobs_.empty()) return;
  kept_job dropped = take_one();
  note("drop the job of ", describe(dropped.what));
  if (model_.drop(dropped.what)) to_be_rejected_ = dropped.what;
}

/// The on_rejected handler.
void random_program::rejected(const firing& f) {
  ++told_of_rejected_;
  const auto expected = std::exchange(to_be_rejected_, std::nullopt);
  if (!is_right()) return;
  if (!expected) return fail("a run was rejected that should not have been");
  const std::size_t n = expected->timer;
  const bool right = f.id == ids_[n] && f.due == clock_time(expected->due) &&
                     f.lateness == duration(expected->lateness) && f.run == expected->number &&
                     f.missed == expected->missed && f.left == expected->to_come && f.name == name(n);
  if (!right)
    return fail("what should have been rejected: " + describe(*expected) + "; what was: " + describe(n, f));
  note("rejected: ", describe(*expected));
  compare();
}

/// Takes out a job; choice 0 takes the last one.
random_program::kept_job random_program::take_one() {
  std::swap(jobs_[jobs_.size() - 1 - choices_.below(jobs_.size())], jobs_.back());
  kept_job j = std::move(jobs_.back());
  jobs_.pop_back();
  return j;
}

}  // namespace rondo::test
