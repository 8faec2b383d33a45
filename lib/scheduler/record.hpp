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

#include <rondo/detail/wheel_core.hpp>
#include <rondo/executor.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>

#include "scheduler/handoff.hpp"
#include "scheduler/repetition.hpp"
#include "sync/sync.hpp"

namespace rondo::detail {

inline constexpr auto relaxed = std::memory_order_relaxed;

/// What a periodic timer has in addition.
struct periodic_part {
  repetition next;
  submitted_runs submitted;
  std::uint32_t running = 0;  // runs in progress
};

struct record;
class timer_owner;

/// What a timer is.
enum class life : std::uint8_t { free, live, completed, ended };

/// What it takes to run and to end a timer.
enum class timer_kind : std::uint8_t {
  plain,     // runs once, has no options of its own and no owner, and its end destroys nothing
  owned,     // as `plain`, but has an owner
  one_shot,  // any other that runs once
  periodic,
};

/// Where a timer waits for its next run. Of timers of one tick, those in an earlier row come first.
enum class waits_in : std::uint8_t {
  nowhere,
  never_due,  // nothing: no tick of the clock is its due tick
  no_memory,  // there was none to insert it into the wheel again: see core::wait_surely() and retry_insertions()
  pass,       // what the driver has taken out of the wheels, and not yet begun
  late_pass,  // as `pass`, among the late runs of bursts
  wheel,      // its shard's
};

/// What only a timer has that is periodic or has options of its own.
struct extra_part {
  std::shared_ptr<const timer_options> own;  // null if it has none
  std::unique_ptr<periodic_part> repeats;    // null if it runs once
  timer_owner* owner = nullptr;              // null if it has none
};

/// One timer. Records are used again and do not move. The slot of an id refers to one record at a time; the generation tells
/// whether the record serves the timer of that id.
///
/// A record belongs to a shard, whose lock guards all members, with these exceptions. While the record is free, its
/// thread may write `next_free` and what is marked [new]. While a run is in progress, `work` belongs to that run, and
/// while `destroying`, or when it has ended with no run in progress, what the timer owns belongs to the thread that destroys it.
///
/// A free record may still be in the wheel, cancelled. The next timer that it serves is then scheduled in that slot, if
/// that is possible. It also keeps its extra part, empty.
///
/// The state of a timer is a row of this table. A flat enumeration would need the product of these columns: a periodic
/// timer may wait, be submitted and run, all at the same time.
///
///     life              waits in                    submitted   running   next
///     free              nowhere                     0           0         live
///     live, one-shot    anywhere but nowhere        0           0         live, completed, ended
///                       nowhere                     1           0         live, completed, ended
///     live, periodic    anywhere; nowhere only if   n           m         live, completed, ended
///                       n + m > 0
///     completed, ended  nowhere                     0           m         free
///
/// `live` is what users call pending. submitted() counts the runs that an executor has and that have not started,
/// running() counts those in progress. A timer is completed if its last run has begun, or if drain() or stop() has
/// ended it. It is counted as completed when none of its runs is in progress any more. A timer has ended if it was
/// cancelled or handed back, which is counted at once.
///
/// Two cache lines: what every waiting timer needs; the callable. cancel() of a plain timer does not touch the second.
struct alignas(64) record : node {
  /// A run that has not started.
  struct pending_run {
    time_point due;
    tick_number tick;
    std::uint64_t order;  // among those of its tick that wait in the same
  };

  std::uint32_t slot = 0;  // see record_slot
  life state = life::free;
  timer_kind kind = timer_kind::plain;  // of a free record, too [new]
  waits_in where : 4 = waits_in::nowhere;
  bool awaited : 1 = false;       // a thread waits until the record is freed
  bool destroying : 1 = false;    // what it owns is being destroyed, without the lock
  bool is_submitted : 1 = false;  // an executor has runs that have not started
  bool is_running : 1 = false;    // runs are in progress
  enum class attachment : std::uint8_t { none, owner, extra } attached = attachment::none;  // [new]
  std::uint32_t tag = 0;         // only its owner knows what it means [new]
  std::uint64_t generation = 1;  // of the timer that it serves, or will serve
  // Of its wait for a certain moment: of timers that are due at the same tick, that with the lowest order, whose wait began
  // first, runs first. Advances when the timer ceases to wait, so it never repeats. The ready list reads it without the lock.
  sync::atomic<std::uint64_t> order{1};
  union {
    time_point deadline{};  // exact, of the run that it waits for; `due` is its tick
    record* next_free;      // while it is free
  };

  task work;  // [new]
  union {     // [new]
    timer_owner* only_owner = nullptr;
    extra_part* extra;
  };

  record() noexcept = default;
  record(const record&) = delete;
  record& operator=(const record&) = delete;
  ~record() { drop_extra(); }

  /// The ticket of a submitted one-shot. It is where the rank is, because the node is in no wheel then.
  run_ticket& ticket() noexcept { return rank; }
  run_ticket ticket() const noexcept { return rank; }

  /// The extra part. Precondition: the record is new. Throws std::bad_alloc; strong guarantee.
  extra_part& with_extra() {
    if (has_extra()) return *extra;
    auto made = std::make_unique<extra_part>();
    made->owner = owner();
    extra = made.release();
    attached = attachment::extra;
    return *extra;
  }
  /// Precondition: the record is free.
  void drop_extra() noexcept {
    if (!has_extra()) return;
    delete extra;
    attached = attachment::none;
  }
  /// Keeps options that are not the defaults. Precondition: the record is new. Throws std::invalid_argument if the slack is
  /// negative, and std::bad_alloc.
  void keep(timer_options&& with) {
    if (with.slack < duration::zero())
      throw std::invalid_argument("rondo: slack must not be negative, but is " +
                                  std::to_string(with.slack.count()) + " ns");
    // An option that is not named here is lost if it is the only one.
    if (!with.run_on && with.name.empty() && with.slack == duration::zero()) return;
    with_extra().own = std::make_shared<const timer_options>(std::move(with));
    kind = timer_kind::one_shot;
  }
  /// Its options; null if it has none.
  std::shared_ptr<const timer_options> own() const noexcept { return has_own() ? extra->own : nullptr; }
  duration slack() const noexcept { return has_own() ? extra->own->slack : duration::zero(); }
  bool has_own_executor() const noexcept { return has_own() && extra->own->run_on; }
  /// Valid as long as own() is held.
  std::string_view name() const noexcept {
    return has_own() ? std::string_view(extra->own->name) : std::string_view();
  }

  /// Precondition: it is periodic.
  periodic_part& repeats() const noexcept { return *extra->repeats; }
  /// Its owner, or null.
  timer_owner* owner() const noexcept {
    if (has_extra()) return extra->owner;
    return attached == attachment::owner ? only_owner : nullptr;
  }
  /// Precondition: the record is new.
  void belong_to(timer_owner& owner, std::uint32_t its_tag) noexcept {
    tag = its_tag;
    if (has_extra()) {
      extra->owner = &owner;
    } else {
      only_owner = &owner;
      attached = attachment::owner;
    }
  }
  /// From now on, it has no owner.
  void leave_owner() noexcept {
    tag = 0;
    if (has_extra())
      extra->owner = nullptr;
    else
      attached = attachment::none;
    if (kind == timer_kind::owned) kind = timer_kind::plain;
  }

  /// The deadline that it waits for; none if it waits for no moment.
  std::optional<time_point> waits_for() const noexcept {
    if (where == waits_in::nowhere) return std::nullopt;
    return where == waits_in::never_due ? time_point::max() : deadline;
  }
  bool live() const noexcept { return state == life::live; }
  /// Whether a run is submitted or in progress.
  bool in_progress() const noexcept { return is_running || is_submitted; }
  bool plain() const noexcept { return kind == timer_kind::plain; }
  bool owned() const noexcept { return kind == timer_kind::owned; }
  bool periodic() const noexcept { return kind == timer_kind::periodic; }
  /// How many runs an executor has that have not started.
  std::size_t submitted() const noexcept {
    if (!is_submitted) return 0;
    return periodic() ? repeats().submitted.size() : 1;
  }

  /// How many runs are in progress.
  std::uint32_t running() const noexcept {
    if (!is_running) return 0;
    return periodic() && !destroying ? repeats().running : 1;
  }
  void note_begin() noexcept {
    is_running = true;
    if (periodic()) ++repeats().running;
  }
  /// Precondition: it is periodic, and not only its last run is in progress.
  void note_end() noexcept { is_running = --repeats().running != 0; }

  /// Invalidates the current wait: what the timer waited for will not come.
  void invalidate_wait() noexcept { order.store(order.load(relaxed) + 1, relaxed); }

  /// Records that a one-shot is submitted.
  void submit(run_ticket number) noexcept {
    is_submitted = true;
    ticket() = number;
  }
  /// Records that a run of a periodic timer is submitted.
  void submit(const submitted_runs::run& run) noexcept {
    is_submitted = true;
    repeats().submitted.submit(run);
  }
  /// Returns whether the ticket was valid. It no longer is. May also be called for a job of a timer that is gone: what
  /// serves another timer, or is being made another one, has nothing submitted with that ticket.
  bool redeem(run_ticket number) noexcept {
    if (!is_submitted) return false;
    if (periodic() ? !repeats().submitted.redeem(number) : ticket() != number) return false;
    is_submitted = periodic() && repeats().submitted.size() != 0;
    return true;
  }
  void take_all_back() noexcept {
    if (!is_submitted) return;
    is_submitted = false;
    if (periodic()) repeats().submitted.take_all_back();
  }

  /// How many runs have not begun; none if nothing limits them.
  std::optional<std::uint64_t> left() const noexcept {
    if (!periodic()) return 0;
    return repeats().next.ends() ? std::optional(repeats().next.left() + submitted()) : std::nullopt;
  }
  /// Whether no further run will start.
  bool over() const noexcept { return !is_submitted && (!periodic() || repeats().next.over()); }

  /// The oldest submitted run of a periodic timer, or null.
  const submitted_runs::run* oldest_submitted() const noexcept {
    return periodic() ? repeats().submitted.oldest() : nullptr;
  }
  /// The run that comes first: the oldest submitted one, or the one that the timer waits for. Precondition: there is
  /// one.
  pending_run first_run() const noexcept {
    const submitted_runs::run* const run = oldest_submitted();
    if (run != nullptr) return {run->what.due, run->tick, run->number};
    return {deadline, due, is_submitted ? ticket() : order.load(relaxed)};
  }

  void destroy_what_it_owns() noexcept {
    work.reset();
    if (!has_extra()) return;
    extra->own.reset();
    extra->repeats.reset();
  }

  /// Describes what is wrong with it, or returns an empty string: see rondo/detail/checks.hpp. Preconditions: locked, and
  /// not free.
  std::string fault() const;

 private:
  bool has_extra() const noexcept { return attached == attachment::extra; }
  bool has_own() const noexcept { return !plain() && has_extra() && extra->own != nullptr; }
  std::string fault_of_state(bool is_periodic) const;
};

}  // namespace rondo::detail
