// What a scheduler keeps for one timer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <rondo/executor.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

#include "scheduler/handoff.hpp"
#include "scheduler/repetition.hpp"
#include "scheduler/striped_wheel.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

inline constexpr auto relaxed = std::memory_order_relaxed;

/// What a periodic timer has in addition.
struct periodic_part {
  repetition next;
  submitted_runs submitted;
};

struct record;
class timer_group;

/// What a timer is. Memory that reads as zero is free, too.
enum class life : std::uint8_t { free, live, completed, ended };

/// Where a timer waits for its next run.
enum class waits_in : std::uint8_t {
  wheel,      // or the list of what is due in the pass in progress
  never_due,  // nothing: no tick of the clock is its due tick
  no_memory,  // there was none to insert it into the wheel; each pass tries again
  nowhere,
};

/// What a record knows about the group of its timer. The record's lock guards `group`, and the group's lock guards the
/// list. Only the group knows `tag`.
struct membership {
  timer_group* group = nullptr;  // null if none
  record* previous = nullptr;
  record* next = nullptr;
  void* tag = nullptr;
};

/// One timer. Records are pooled and never move, so a slot always refers to the same record; the generation tells
/// whether the record still serves the same timer.
///
/// `mutex` guards all members, with two exceptions. Until schedule() returns, only the scheduling thread knows the
/// record, and it writes what is marked [new] without the lock. While a run is in progress, `work` belongs to that run.
/// Atomics are written under the lock. They may be read without it: the reader then takes a lock and checks again.
///
/// A plain timer that waits in the wheel is cancelled without a lock: cancel() changes the word of shared_node, and with it
/// the generation, and then owns the record. So a thread that has locked such a record knows only that the timer was
/// there. The thread may change the timer only after it has parked its node or taken it out of the wheel, and must read it
/// with deadline_if(). No other timer needs this.
///
/// A free record may still be in the wheel, parked. The next timer that it serves is scheduled in that place, if that is
/// possible.
///
/// The state of a timer is a row of this table. A flat enumeration would need the product of these columns: a periodic
/// timer may wait, be submitted and run, all at the same time.
///
///     life              waits in                    submitted   running   next
///     free              –                           0           0         live
///     live, one-shot    anywhere but nowhere        0           0         live, completed, ended
///                       nowhere                     1           0         live, completed, ended
///     live, periodic    anywhere; nowhere only if   n           m         live, completed, ended
///                       n + m > 0
///     completed, ended  nowhere                     0           m         free
///
/// `live` is what users call pending. `submitted` counts the runs that an executor has and that have not started,
/// `running` counts those in progress. A timer is completed if its last run has begun, or if drain() or stop() has
/// ended it. It is counted as completed when none of its runs is in progress any more. A timer has ended if it was
/// cancelled or handed back, which is counted at once. A free record says that it waits in the wheel, so that schedule()
/// writes only its life.
///
/// Three cache lines: what every waiting timer needs; the callable; what an executor or a recurrence needs. Calls about
/// a plain timer do not touch the third, and cancel() does not touch the second either.
struct alignas(64) record : shared_node {
  /// A run that has not started.
  struct pending_run {
    time_point due;
    tick_number tick;
    std::uint64_t order;  // among those of its tick
  };

  explicit record(std::uint32_t own_slot) noexcept : slot(own_slot) {}

  // Numbers the waits for a certain moment, in the order in which they began: of timers that are due at the same tick, that
  // with the lowest number runs first. Advances when the timer ceases to wait, so it never repeats. Written under the
  // lock; the lists read it without.
  sync::atomic<std::uint64_t> arming{1};

 private:
  std::atomic<std::int64_t> deadline_or_next_free_{0};

 public:
  std::uint32_t slot;  // in the pool
  sync::record_mutex mutex;
  // The timer runs once, has no options of its own, is in no group, and its end destroys nothing. Also true for a free
  // record. [new] Released: a thread that acquires it and then finds the timer's generation has the value of that
  // timer.
  std::atomic<bool> plain{true};
  std::atomic<life> state{life::free};  // [new]
  // In one byte, the last of the first line.
  waits_in where : 2 = waits_in::wheel;
  bool awaited : 1 = false;     // a thread waits until the record is freed
  bool destroying : 1 = false;  // what it owns is being destroyed, without the lock

  std::uint32_t submitted = 0;
  std::uint32_t running = 0;
  task work;  // [new]

  std::unique_ptr<periodic_part> repeats;    // [new] null if it runs once
  std::shared_ptr<const timer_options> own;  // [new] null if it has none
  union {
    // While the timer is in no queue, one from a count for the whole scheduler: the ticket of a submitted
    // one-shot, or the order among the timers that are never due.
    std::uint64_t number = 0;
    record* next_batch;  // while it is free, in the depot of the pool: the first of the next batch
  };
  membership member;

  /// [new] Exact, of the run that it waits for; `due` is its tick.
  time_point deadline() const noexcept { return time_point(duration(deadline_or_next_free_.load(relaxed))); }
  /// (Released: a thread that reads this deadline then finds a word that is not earlier.)
  void set_deadline(time_point t) noexcept {
    deadline_or_next_free_.store(t.time_since_epoch().count(), std::memory_order_release);
  }
  /// While it is free. (Others may read the deadline at any time, so both are one atomic number.)
  record* next_free() const noexcept {
    const auto address = static_cast<std::intptr_t>(deadline_or_next_free_.load(relaxed));
    return reinterpret_cast<record*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  void set_next_free(record* r) noexcept {
    deadline_or_next_free_.store(reinterpret_cast<std::intptr_t>(r), std::memory_order_release);
  }

  /// The deadline of a timer that waits in the wheel, if the word is still `seen`.
  std::optional<time_point> deadline_if(node_word seen) const noexcept {
    const duration found(deadline_or_next_free_.load(std::memory_order_acquire));
    return word().bits == seen.bits ? std::optional(time_point(found)) : std::nullopt;
  }
  /// What it is in the wheel while it waits there.
  place waits_as() const noexcept { return plain.load(relaxed) ? place::waiting : place::guarded; }

  /// Keeps options that are not the defaults. Precondition: the record is new. Throws std::invalid_argument if the slack is
  /// negative, and std::bad_alloc.
  void keep(timer_options&& with) {
    if (with.slack < duration::zero())
      throw std::invalid_argument("rondo: slack must not be negative, but is " +
                                  std::to_string(with.slack.count()) + " ns");
    if (!with.run_on && with.name.empty() && with.slack == duration::zero()) return;
    own = std::make_shared<const timer_options>(std::move(with));
    plain.store(false, std::memory_order_release);
  }
  /// How late it may be. Precondition: it is not plain, or new.
  duration slack() const noexcept { return own == nullptr ? duration::zero() : own->slack; }
  bool has_own_executor() const noexcept { return !plain.load(relaxed) && own != nullptr && own->run_on; }
  /// Valid as long as `own` is held.
  std::string_view name() const noexcept {
    return plain.load(relaxed) || own == nullptr ? std::string_view() : std::string_view(own->name);
  }

  bool live() const noexcept { return state.load(relaxed) == life::live; }
  /// Whether the record, which is locked, serves the timer with that generation, and the timer is pending.
  bool live(std::uint64_t g) const noexcept { return generation() == g && live(); }
  /// Whether a run is submitted or in progress.
  bool in_progress() const noexcept { return running != 0 || submitted != 0; }
  bool periodic() const noexcept { return !plain.load(relaxed) && repeats != nullptr; }

  // A record whose memory the pool has given back reads as zero. Nobody who knows a timer takes such a record for that
  // timer's, because generations and armings are never 0. Otherwise it is like a free record, except for `slot` and
  // `plain`.

  /// Turns a record that reads as zero into a free one. Others may be reading it, with ids of timers that are gone.
  /// Precondition: it never had a later generation or arming than these.
  void revive(std::uint32_t own_slot, std::uint64_t own_generation, std::uint64_t own_arming) noexcept {
    slot = own_slot;
    arming.store(own_arming, relaxed);
    set(node_word::of(own_generation, place::out));
    plain.store(true, relaxed);
  }

  /// Invalidates the current wait: what the timer waited for will not come.
  void invalidate_wait() noexcept { arming.store(arming.load(relaxed) + 1, relaxed); }

  /// Records that a one-shot is submitted.
  void submit(run_ticket ticket) noexcept {
    ++submitted;
    number = ticket;
  }
  /// Records that a run of a periodic timer is submitted.
  void submit(const submitted_runs::run& run) noexcept {
    ++submitted;
    repeats->submitted.submit(run);
  }
  /// Returns whether the ticket was valid. It no longer is. May also be called for a job of a timer that is gone, while
  /// schedule() makes a new timer of the record: that timer has nothing submitted, and what is new is not read.
  bool redeem(run_ticket ticket) noexcept {
    if (submitted == 0) return false;
    if (periodic() ? !repeats->submitted.redeem(ticket) : number != ticket) return false;
    --submitted;
    return true;
  }
  void take_all_back() noexcept {
    if (submitted == 0) return;
    submitted = 0;
    if (periodic()) repeats->submitted.take_all_back();
  }

  /// How many runs have not begun; none if nothing limits them.
  std::optional<std::uint64_t> left() const noexcept {
    if (!periodic()) return 0;
    return repeats->next.ends() ? std::optional(repeats->next.left() + submitted) : std::nullopt;
  }
  /// Whether no further run will start.
  bool over() const noexcept { return submitted == 0 && (!periodic() || repeats->next.over()); }

  /// The oldest submitted run of a periodic timer, or null.
  const submitted_runs::run* oldest_submitted() const noexcept {
    return periodic() ? repeats->submitted.oldest() : nullptr;
  }
  /// The run that comes first: the oldest submitted one, or the one that the timer waits for. Precondition: there is
  /// one.
  pending_run first_run() const noexcept {
    const submitted_runs::run* const run = oldest_submitted();
    return run != nullptr ? pending_run{run->what.due, run->tick, run->number}
                          : pending_run{deadline(), due_tick(), number};
  }

  void destroy_what_it_owns() noexcept {
    work.reset();
    own.reset();
    repeats.reset();
    plain.store(true, relaxed);
  }

  /// Describes what is wrong with it, or returns an empty string: see rondo/detail/checks.hpp. Precondition: locked.
  /// Reads what is marked [new] only once the record is known to all, so it may be called at any time.
  std::string fault() const;

 private:
  std::string fault_of_state(bool is_periodic) const;
};

}  // namespace rondo::detail
