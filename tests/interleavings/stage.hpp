// Timers under the explorer, and what must be true of them in the end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <version>
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include "interleavings/explored_core.hpp"
#include "interleavings/numbered_timers.hpp"
#include "schedule_on.hpp"

namespace rondo::test {

/// A core whose timers are counted. Each one-shot runs, is cancelled or refused, is handed back by stop(), or is
/// rejected by its executor, once. Each periodic timer is cancelled, refused or handed back once, or else completed.
/// (Timers are numbered in the order of add() and repeat().)
class stage {
 public:
  enum class tasks_run { inline_, as_jobs };

  enum class driver { by_hand, thread };

  explicit stage(options o = {.buckets = 2}, tasks_run where = tasks_run::inline_,
                 driver which = driver::by_hand) {
    if (where == tasks_run::as_jobs) o.run_on = [this](job j) { keep(std::move(j)); };
    core_ = std::make_shared<explored_core>(std::move(o), which == driver::thread);
  }
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  explored_core& core() { return *core_; }
  /// Timers that a test has scheduled on the core and cancelled.
  std::uint64_t also_cancelled = 0;
  /// A job that the executor has got and nobody has called yet.
  job& submitted(std::size_t i) {
    const unwatched here;
    given_.take();
    return jobs_[i];
  }

  /// Schedules a timer for `due`, or never.
  void add(duration due) {
    schedule(timers_.add(),
             [&](task&& work) { return schedule_on(*core_, deadline(due), core_->now(), std::move(work)); });
  }
  /// As add(), with a callable that owns nothing: cancelling such a timer takes another path.
  void add_plain(duration due) {
    timer& t = timers_.add();
    {
      const unwatched here;
      t.plain = true;
    }
    try_to_set(t, [&] {
      return schedule_on(*core_, deadline(due), core_->now(), [this, &t](const firing& f) { run(t, f); });
    });
  }
  /// As add(), but the destruction of the callable waits until `let_go`.
  void add_held(duration due) {
    schedule(
        timers_.add(),
        [&](task&& work) { return schedule_on(*core_, deadline(due), core_->now(), std::move(work)); },
        std::shared_ptr<int>(new int, [this](const int* owned) {
          delete owned;
          let_go.wait();
        }));
  }
  /// As add(), but the timer is submitted as a separate job: see submitted().
  void add_job(duration due) {
    schedule(timers_.add(), [&](task&& work) {
      return schedule_on(*core_, deadline(due), core_->now(), std::move(work),
                         {.run_on = [this](job j) { keep(std::move(j)); }});
    });
  }
  void repeat(const recurrence& r) {
    timer& t = timers_.add();
    {
      const unwatched here;
      t.periodic = true;
      t.overlaps = r.on_overlap() == overlapping_runs::allow;
    }
    schedule(t, [&](task&& work) { return schedule_on(*core_, r, core_->now(), std::move(work)); });
  }

#ifdef __cpp_lib_jthread
  /// As add(), but the run ends only when it is asked to stop. Whoever asks calls `when_asked`.
  void add_until_asked(duration due) {
    timer& t = timers_.add();
    const auto owned = std::make_shared<int>();
    {
      const unwatched here;
      t.callable = owned;
    }
    try_to_set(t, [&] {
      return schedule_on(*core_, deadline(due), core_->now(),
                         [this, &t, owned](const firing& f, std::stop_token token) {
                           run_until_asked(t, f, std::move(token));
                         });
    });
  }
#endif

  cancel_result cancel(std::size_t i) { return ended(i, core_->cancel(timers_.id(i))); }
  cancel_result cancel_and_wait(std::size_t i) {
    const cancel_result result = ended(i, core_->cancel_and_wait(timers_.id(i)));
    const unwatched here;
    expect(timers_[i].running.load(std::memory_order_relaxed) == 0,
           "after cancel_and_wait() no run is in progress");
    expect(timers_[i].callable.expired(), "after cancel_and_wait() the callable is destroyed");
    return result;
  }
  bool move(std::size_t i, duration to) {
    return core_->reschedule(timers_.id(i), deadline(to), core_->now());
  }
  std::vector<unfired> stop() {
    std::vector<unfired> list = stop_from_inside();
    expect(handled_ <= 1, "a handler that was called has returned");
    const unwatched here;
    for (const timer& t : timers_)
      expect(t.running.load(std::memory_order_relaxed) == 0, "after stop() no run is in progress");
    return list;
  }
  std::vector<unfired> stop_from_inside() {
    std::vector<unfired> list = core_->stop();
    const unwatched here;
    for (const unfired& u : list) returned_.push_back(u.id);  // add() may not have got this id yet
    stopped_ = true;
    return list;
  }
  /// Gives up at once if something is in progress. Then another stop(), or the end, gets the list.
  void stop_without_waiting() {
    const auto list = core_->stop_by(virtual_time::now());
    const unwatched here;
    if (!list) return void(gave_up_ = true);
    for (const timer& t : timers_)
      expect(t.running.load(std::memory_order_relaxed) == 0, "after stop(limit) no run is in progress");
    for (const unfired& u : *list) returned_.push_back(u.id);
    stopped_ = true;
  }
  /// Checks that no timer is listed twice, and that timers that nobody touches are listed.
  void list(std::size_t untouched) {
    std::vector<timer_id> ids;
    for (const timer_info& t : core_->list()) ids.push_back(t.id);
    const unwatched here;
    std::sort(ids.begin(), ids.end());
    expect(std::unique(ids.begin(), ids.end()) == ids.end(), "list() has each timer once");
    for (std::size_t i = 0; i != untouched; ++i)
      expect(std::binary_search(ids.begin(), ids.end(), timers_[i].id), "list() has untouched timers");
  }
  /// Checks that a timer that is not moved is due at its original time, if it is pending.
  void look_at_due(std::size_t i, duration due) {
    const timer_id own = timers_.id(i);
    const auto told = core_->due(own);
    expect(!told || told == deadline(due), "due() is the timer's deadline");
    for (const timer_info& t : core_->list())
      expect(t.id != own || t.due == deadline(due), "list() has a timer with its own due");
  }
  /// No time passes while all timers end, and then at most `late`.
  void drain(duration late = {}) {
    expect(core_->drain(1h), "all pending timers have run or ended");
    expect(virtual_time::now() - begin_ <= late, "drain() returns as soon as the last timer has ended");
    for (std::size_t i = 0; i != timers_.count(); ++i) {
      expect(timers_[i].running.load(std::memory_order_relaxed) == 0, "after drain() no run is in progress");
      // (Nothing orders the count of a plain timer's end after the end itself.)
      expect(timers_[i].plain || !core_->pending(timers_.id(i)) ||
                 core_->due(timers_.id(i)) == time_point::max(),
             "after drain() only timers that are never due are pending");
    }
  }

  /// Called before the threads begin.
  void begin() { begin_ = virtual_time::now(); }

  /// Calls a handler of the user, which leaves a note that stop() waits for.
  void call_handler() {
    core_->call_out(nullptr, [this] {
      ++handled_;
      const unwatched here;
      expect(!stopped_, "no handler is called after stop()");
    });
  }

  timer_id id_of(std::size_t i) const { return timers_.id(i); }
  bool pending(std::size_t i) const { return core_->pending(timers_.id(i)); }
  void await_run(std::size_t i) { timers_[i].ran.wait(); }

  /// Does what the scheduler's destructor does.
  void retire() {
    core_->retire();
    expect(handled_ <= 1, "a handler that was called has returned");
    const unwatched here;
    for (const timer& t : timers_)
      expect(t.running.load(std::memory_order_relaxed) == 0,
             "after the destruction of a scheduler no run is in progress");
    stopped_ = retired_ = true;
  }

  /// Called when the threads are done.
  void check() {
    if (gave_up_ && !stopped_) stop();
    if (!stopped_) end_all();
    for (job& j : jobs_) j();  // does nothing any more
    std::uint64_t without_an_end = 0;
    for (timer& t : timers_) {
      t.returned = static_cast<int>(std::count(returned_.begin(), returned_.end(), t.id));
      const int ends = t.cancelled + t.refused + t.returned + (t.periodic ? 0 : t.runs);
      expect(ends <= 1, "a timer has one end");
      without_an_end += ends == 0 && !t.periodic ? 1 : 0;
      expect(t.callable.expired(), "a timer that has ended has no callable");
      expect(t.running.load(std::memory_order_relaxed) == 0, "all runs have ended");
    }
    check_statistics(core_->stats(), without_an_end);
    core_->retire();
  }

  /// Whether all runs must begin when they are due: time passes only while the driver sleeps.
  bool in_time = false;
  /// For what waits until another thread lets it go.
  explored_event let_go;
  /// Called in each run.
  std::function<void(std::size_t)> in_run = [](std::size_t) {};
  /// Called when a run is asked to stop.
  std::function<void(std::size_t)> when_asked = [](std::size_t) {};

 private:
  struct timer : numbered_timer {
    explored_event ran;
#ifdef __cpp_lib_jthread
    explored_event asked;
    // Destroyed with the stage: otherwise the end of the run would wait for a callback, where the explorer does not see it.
    std::optional<std::stop_callback<std::function<void()>>> stop_callback;
#endif
    bool plain = false;
    bool periodic = false;
    bool overlaps = false;  // several runs may be in progress at a time
    int cancelled = 0, refused = 0, returned = 0;
  };

  static time_point deadline(duration due) { return due == duration::max() ? time_point::max() : at(due); }

  template <class Schedule>
  void schedule(timer& t, Schedule&& schedule_on_core,
                const std::shared_ptr<int>& owned = std::make_shared<int>()) {
    {
      const unwatched here;
      t.callable = owned;
    }
    try_to_set(t, [&] { return schedule_on_core([this, &t, owned](const firing& f) { run(t, f); }); });
  }
  template <class Set>
  void try_to_set(timer& t, Set&& set) {
    timer_id id;
    try {
      id = set();
    } catch (const stopped_error&) {
    } catch (const capacity_error&) {
    }
    const unwatched here;
    if (id == timer_id{}) ++t.refused;
    timers_.set_id(t, id);
  }

  void keep(job&& j) {
    const unwatched here;
    jobs_.push_back(std::move(j));
    given_.give();
  }

  void run(timer& t, const firing& f) {
    const std::size_t number = begun(t, f);
    in_run(number);
    t.running.fetch_sub(1, std::memory_order_relaxed);
    t.ran.set();
  }
#ifdef __cpp_lib_jthread
  void run_until_asked(timer& t, const firing& f, std::stop_token token) {
    const std::size_t number = begun(t, f);
    t.stop_callback.emplace(std::move(token), [this, &t, number] {
      when_asked(number);
      t.asked.set();
    });
    t.asked.wait();
    t.running.fetch_sub(1, std::memory_order_relaxed);
    t.ran.set();
  }
#endif
  /// Returns the number of the timer.
  std::size_t begun(timer& t, const firing& f) {
    const unwatched here;
    expect(t.running.fetch_add(1, std::memory_order_relaxed) == 0 || t.overlaps,
           "one run of a timer is in progress at a time");
    expect(virtual_time::now() >= f.due, "no run begins before it is due");
    expect(f.lateness >= duration::zero(), "a lateness is not negative");
    if (in_time) expect(f.lateness == duration::zero(), "a run is not late");
    ++t.runs;
    std::size_t number = 0;
    while (&timers_[number] != &t) ++number;
    return number;
  }

  cancel_result ended(std::size_t i, cancel_result result) {
    const unwatched here;
    if (result == cancel_result::cancelled) {
      ++timers_[i].cancelled;
      expect(timers_[i].callable.expired(), "the callable of a cancelled timer is destroyed");
    }
    if (result == cancel_result::running) ++cancelled_running_;
    return result;
  }

  /// Runs the due timers, and ends the remaining ones.
  void end_all() {
    virtual_time::move_to(at(10ms));
    core_->pass();
    for (job& j : jobs_) j();
    for (std::size_t i = 0; i != timers_.count(); ++i)
      if (timers_[i].periodic && core_->pending(timers_[i].id)) cancel(i);
    expect(!core_->next_due(), "nothing is due after all have run");
    for (const unfired& u : stop())
      expect(u.due == time_point::max(), "a timer that does not run is never due");
  }

  /// `without_an_end` is the number of one-shots that have no end.
  void check_statistics(const statistics& s, std::uint64_t without_an_end) const {
    const bool one_shots_alone =
        std::none_of(timers_.begin(), timers_.end(), [](auto& t) { return t.periodic; });
    const std::uint64_t lost = s.rejected + (retired_ ? s.returned : 0);
    expect(one_shots_alone ? without_an_end == lost : without_an_end <= lost, "a timer has an end");
    expect(s.pending == 0, "nothing is pending");
    expect(adds_up(s), "the counters add up");
    expect(s.fired == sum(&timer::runs), "all runs are counted");
    const std::uint64_t surely_cancelled = sum(&timer::cancelled) + also_cancelled;
    const std::uint64_t perhaps_cancelled = one_shots_alone ? 0 : cancelled_running_;
    expect(s.cancelled >= surely_cancelled && s.cancelled <= surely_cancelled + perhaps_cancelled,
           "cancelled timers are counted");
    expect(retired_ || s.returned == sum(&timer::returned), "timers that were handed back are counted");
  }

  std::uint64_t sum(int timer::*count) const {
    int all = 0;
    for (const timer& t : timers_) all += t.*count;
    return static_cast<std::uint64_t>(all);
  }

  numbered_timers<timer> timers_;
  std::deque<job> jobs_;
  handing_over given_;  // the jobs
  std::vector<timer_id> returned_;
  std::uint64_t cancelled_running_ = 0;  // calls of cancel() that returned `running`
  time_point begin_;
  int handled_ = 0;  // not atomic
  bool gave_up_ = false;
  bool stopped_ = false;
  bool retired_ = false;
  std::shared_ptr<explored_core> core_;
};

/// What one thread does on a stage.
struct part {
  const char* name;
  std::function<void(stage&)> act;
};

/// A scenario in which these parts run at the same time, on a stage that `prepare` has set up.
inline std::function<scenario()> on_stage(std::function<void(stage&)> prepare, std::vector<part> parts,
                                          options o = {.buckets = 2},
                                          stage::tasks_run where = stage::tasks_run::inline_) {
  return [=] {
    const auto s = std::make_shared<stage>(o, where);
    prepare(*s);
    s->begin();
    scenario what;
    for (const part& p : parts) what.threads.push_back({p.name, [s, act = p.act] { act(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

}  // namespace rondo::test
