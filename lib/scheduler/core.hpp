// Tasks over a wheel: all that a scheduler does but for making time pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/slow_run.hpp>

#include "scheduler/call_checks.hpp"
#include "scheduler/frame.hpp"
#include "scheduler/histogram_recorder.hpp"
#include "scheduler/in_flight.hpp"
#include "scheduler/pending_limit.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/record.hpp"
#include "scheduler/record_pool.hpp"
#include "scheduler/repetition.hpp"
#include "scheduler/retry_list.hpp"
#include "scheduler/user_handlers.hpp"
#include "sync/threads.hpp"
#include "sync/wait_point.hpp"

namespace rondo::detail {

/// The one body of work behind all schedulers. Drivers derive from it: they say what time it is, call
/// run_pass() when something is due, and are told when that moves earlier.
///
/// Locks, in the order in which they may be nested: that of those who wait for something to end, a record's,
/// a stripe's of the wheel (or two, in the order of their addresses), then one of: the delay queue's, the ready list's,
/// the unplaced list's, a lane's of the pool. None is held while user code runs. No call takes a lock that
/// all callers share, but for the delay queue's when a bucket gets its first timer, or a stripe an earlier far one.
///
/// The members are defined in core_*.hpp, included below.
template <class Sync>
class basic_core : public job_host, public std::enable_shared_from_this<basic_core<Sync>> {
 public:
  basic_core(const options&, time_point start);
  ~basic_core() override = default;
  basic_core(const basic_core&) = delete;
  basic_core& operator=(const basic_core&) = delete;

  // What users ask for: see rondo::scheduler. The two of them that are called most are one piece of code each, as a
  // fifth of their instructions would be for calls within them.
  [[gnu::flatten]] timer_id schedule(time_point due, time_point now, task&& work,
                                     std::shared_ptr<const executor> run_on = {},
                                     std::unique_ptr<repetition> repeats = {});
  timer_id schedule(const recurrence&, time_point now, task&& work,
                    std::shared_ptr<const executor> run_on = {});
  [[gnu::flatten]] cancel_result cancel(timer_id);
  cancel_result cancel_and_wait(timer_id);
  bool reschedule(timer_id, time_point due, time_point now);
  bool pending(timer_id) const;
  std::size_t pending() const noexcept;
  std::optional<time_point> next_due();
  std::vector<unfired> stop();
  bool drain(duration limit);
  statistics stats() const;
  void dump(std::ostream&) const;
  virtual time_point now() const noexcept = 0;

  /// What the destructor of a scheduler does: stops, waits, ends the driver, destroys what was not fired and
  /// the user's handlers.
  void retire() noexcept;

  // What drivers ask for.

  /// Runs, or hands to the executor, what is due at `until` and now; at most `limit` of it, and what is left
  /// then is for the next call. Returns how many that were. Throws std::bad_alloc: call again.
  std::size_t run_pass(time_point until, std::size_t limit);

  /// To be called in a child made by fork(), where there is no driver: this is only a copy, of what was perhaps
  /// just changing, and its locks may never be free. All that users may call says so or does nothing from now
  /// on, without a look at that; the callables are never destroyed. Precondition: there is one thread.
  void abandon() noexcept;
  bool abandoned() const noexcept { return abandoned_; }

  bool stopped() const noexcept { return stopped_.load(std::memory_order_seq_cst); }
  bool draining() const noexcept { return draining_.load(std::memory_order_seq_cst); }
  /// std::logic_error if the caller is inside.
  void refuse_inside(const char* call) const;

  // What checked builds do around each call of the user's, and each activity: see checked_call.
  void begin_call() noexcept { checks_.begin(); }
  void end_call(const char* name) noexcept;

  // What jobs ask for.
  void start(const job_ticket&) noexcept override;
  void drop(const job_ticket&) noexcept override;

 protected:
  /// Called, with no lock held, when next_due() may have moved earlier, and when the driver is to notice
  /// stop().
  virtual void next_due_moved_earlier() noexcept {}
  virtual std::uint64_t wakeups() const noexcept { return 0; }
  /// Called as the scheduler is destroyed, when it is stopped or abandoned.
  virtual void end_driver() noexcept {}
  /// Makes time pass until drained(), or for `limit`, or sees to it that the driver does; returns which it was.
  virtual bool pass_time_until_drained(duration limit);

  /// Whether drain() has nothing more to wait for.
  bool drained() const noexcept;
  /// Where one waits until something has ended; a driver may wait there, too.
  wait_point<Sync>& endings() noexcept { return endings_; }

  /// Calls a handler of the user, unless stopped; `whom` is what frame::inside() is asked for.
  void call_out(const void* whom, const std::function<void()>& handler) noexcept;

 private:
  using record_type = record<Sync>;
  using wheel_type = wheel_core<Sync>;
  using record_lock = std::lock_guard<typename Sync::record_mutex>;

  // Tests with locks of their own look at each step themselves.
  static constexpr bool is_checked = checks && std::is_same_v<Sync, threads>;

  /// What a pass of the driver knows.
  struct pass {
    const user_handlers& user;
    time_point reading;  // of the clock; taken after each run, and the start of the next
  };

  /// What has come of a point that a timer waited for.
  struct beginning {
    record_type* timer = nullptr;  // null: no run begins
    std::uint64_t generation = 0;
    std::uint64_t ticket = 0;  // of a run that is to be handed over
    std::shared_ptr<const executor> run_on;
    firing fact;
    bool last = false;             // the timer is not pending any more
    bool drained = false;          // nor is it needed any more
    std::uint64_t overlapped = 0;  // points that were dropped
  };

  enum class found_in {
    apart,
    pass,
    late_in_pass,
    wheel
  };  // in the order in which those of one tick would have run

  /// A timer that stop() has found, not yet taken.
  struct candidate {
    record_type* timer;
    std::uint64_t arming;
    tick_number tick;
    found_in where;
    std::uint64_t order;
  };

  /// What a timer goes through into the wheel; made by the call that schedules, and told to wake() the driver
  /// when no lock is held any more. From the moment that the timer is in the wheel its task may run and
  /// destroy the scheduler: so what wake() needs is kept before that.
  class gate {
   public:
    enum class of { new_timers, old_timers };  // drain() closes it to new ones
    gate(basic_core& core, of whom) noexcept : core_(core), whom_(whom) {}
    bool may_insert() const noexcept {
      return !core_.stopped() && (whom_ == of::old_timers || !core_.draining());
    }
    void top_moved_earlier() { kept_ = core_.shared_from_this(); }
    void before_move(node& n) noexcept { move_arming_on(static_cast<record_type&>(n)); }
    void wake() noexcept {
      if (kept_ != nullptr) kept_->next_due_moved_earlier();
    }

   private:
    basic_core& core_;
    const of whom_;
    std::shared_ptr<basic_core> kept_;
  };

  /// In progress: a pass of the driver, or a job on a thread of an executor. stop() waits until there is
  /// none.
  class activity {
   public:
    explicit activity(basic_core& core) noexcept;
    ~activity();
    activity(const activity&) = delete;
    activity& operator=(const activity&) = delete;

   private:
    basic_core& core_;
    frame frame_;
  };

  // core_schedule.hpp
  [[noreturn]] void refuse_stopped() const;
  record_type* find(timer_id) const noexcept;
  timer_id id_of(const record_type& r) const noexcept {
    return timer_id_access::make(number_, r.slot, r.generation);
  }
  bool publish(record_type&, tick_number, gate&);
  void forget_unpublished(record_type&) noexcept;
  void arm(record_type&, time_point deadline, tick_number, gate&);
  void arm_surely(record_type&, time_point deadline, tick_number, gate&) noexcept;
  void set_apart(record_type&) noexcept;
  void disarm(record_type&) noexcept;
  static void move_arming_on(record_type&) noexcept;
  void place_unplaced(tick_number until) noexcept;
  bool put_into_wheel(record_type&) noexcept;

  void leave_place(record_type&) noexcept;

  // core_cancel.hpp
  void destroy_callable(record_type&) noexcept;
  void destroy_inside(record_type&) noexcept;
  template <class Count>
  void finish(record_type&, Count&&) noexcept;
  bool end_if_over(record_type&) noexcept;
  bool end_if_draining(record_type&) noexcept;
  void count_leaving() noexcept;
  template <class Count>
  void release(record_type&, Count&&) noexcept;
  template <class Count>
  void free_record(record_type&, Count&&) noexcept;

  // core_run.hpp
  void collect(tick_number until);
  bool begin(const typename ready_list<Sync>::entry&, pass&);
  beginning take_up(const typename ready_list<Sync>::entry&, pass&);
  time_point run(record_type&, std::uint64_t generation, const firing&, bool last, time_point start) noexcept;
  void end_run(record_type&, time_point ended) noexcept;

  // core_repeat.hpp
  bool take_up_point(record_type&, bool to_executor, time_point reading, recurrence::occurrence&, beginning&);
  void begin_kept(record_type&, time_point reading, recurrence::occurrence&) noexcept;
  void overlap(record_type&, const recurrence::look&, time_point reading, beginning&) noexcept;
  void await_upcoming(record_type&, bool to_executor, time_point reading) noexcept;
  void go_on(record_type&, time_point ended, gate&) noexcept;

  // core_jobs.hpp
  void hand_over(beginning&, const user_handlers&) noexcept;
  enum class mishap { rejected, failed };
  void give_up_ticket(record_type&, std::uint64_t generation, std::uint64_t number, mishap) noexcept;

  // core_check.hpp
  std::string fault();
  std::string fault_at_rest();

  // core_stop.hpp
  void find_unfired(std::vector<candidate>&);
  void find_apart(record_type&, std::vector<candidate>&);
  void tell_unfired_taken() noexcept;
  static bool good(const candidate&) noexcept;
  void end_now(record_type&) noexcept;
  void count_completed() noexcept;
  void complete(record_type&) noexcept;
  template <class Condition>
  void complete_if(record_type&, Condition&&) noexcept;
  void hand_back(const candidate&, std::vector<unfired>&);
  void end_periodic_timers(std::vector<candidate>&);
  void stop_one_by_one() noexcept;

  std::uint32_t number_;    // of this scheduler in the process
  bool abandoned_ = false;  // (a child of this process may change both, when it begins)
  const tick_grid grid_;
  const duration slow_after_;
  wheel_type wheel_;
  record_pool<Sync> pool_;
  ready_list<Sync> ready_;  // filled and emptied by the driver alone
  histogram_recorder<Sync> lateness_;
  histogram_recorder<Sync> run_time_;
  call_checks<Sync> checks_;
  pending_limit<Sync> limit_;
  retry_list<Sync> unplaced_;
  shared_handlers<Sync> handlers_;
  wait_point<Sync> endings_;
  in_flight<Sync> activities_{endings_};

  tick_number collected_ = 0;  // up to where the pass in progress has collected

  typename Sync::template atomic<bool> stopped_{false};
  typename Sync::template atomic<bool> draining_{false};
  typename Sync::template atomic<std::uint64_t> orders_{0};      // given out: record::order
  typename Sync::template atomic<std::size_t> apart_{0};         // timers that are never due
  typename Sync::template atomic<bool> unfired_claimed_{false};  // by the one stop() that gets them
  typename Sync::template atomic<bool> unfired_taken_{false};
};

/// The core of the schedulers that users get.
class core : public basic_core<threads> {
 public:
  using basic_core::basic_core;
};

extern template class basic_core<threads>;

}  // namespace rondo::detail

#include "scheduler/core_cancel.hpp"
#include "scheduler/core_check.hpp"
#include "scheduler/core_jobs.hpp"
#include "scheduler/core_look.hpp"
#include "scheduler/core_repeat.hpp"
#include "scheduler/core_run.hpp"
#include "scheduler/core_schedule.hpp"
#include "scheduler/core_stop.hpp"
