// What a database does for stores and dispatchers. SQLite and PostgreSQL each derive from these two classes; the code
// that uses them is the same for both.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

#include <rondo/durable.hpp>

#include "calendar/zoned_point.hpp"

namespace rondo::durable::detail {

using rondo::detail::zoned_point;

/// When a task is due: after a delay from the engine's now, or at a time of its clock.
using due_time = std::variant<duration, wall_time>;

/// The states of a row in a database. Statements write `waiting` for all tasks that wait; triggers make that one of the last two
/// if the task has a lane.
enum class row_state : std::int64_t {
  waiting,
  held,  ///< claimed, not begun
  running,
  dead,
  cancelled,  ///< and still running: the row has no key, and is removed when its run ends
  in_lane,    ///< waiting in a lane
  behind,     ///< waiting behind another of its lane
};

/// The state of a task whose row has that state.
inline task_state task_state_of(std::int64_t row) {
  static constexpr std::array states{task_state::waiting, task_state::held,    task_state::running,
                                     task_state::dead,    task_state::running, task_state::waiting,
                                     task_state::waiting};
  return states.at(static_cast<std::size_t>(row));
}

/// Identifies a claim. Later changes to the task need both members, and the session that has claimed it.
struct ticket {
  std::int64_t id = 0;
  std::int64_t fence = 0;
  friend auto operator<=>(const ticket&, const ticket&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A task that this session has claimed, and the time until it is due by the engine's clock (not positive if it is
/// due).
struct claim {
  task what;
  duration remaining;
  int max_attempts = 0;  // of this task; 0: the dispatcher's
  bool in_lane = false;
  std::string schedule = {};  // of a repeated task, as text
  missed_points missed = missed_points::run_once;
  std::optional<std::chrono::seconds> point_offset = {};  // of the task's point
};

/// A run that failed, or that the handler wants to repeat later.
struct failure {
  ticket of;
  std::optional<duration> retry_after;  // none if the task is dead
  std::string reason;                   // UTF-8; empty unless the task is dead
  bool counts = true;                   // whether the run was an attempt
};

/// A run of a repeated task.
struct pointed {
  ticket of;
  zoned_point point;
};

/// A point of a repeated task is over: it has been run, given up or passed over.
struct passage {
  ticket of;
  std::optional<zoned_point> next;  // none if there is no more point: then it ends as other tasks do
  bool given_up = false;
  std::string reason = {};  // UTF-8; why it was given up
};

/// A dispatcher's requests to its database, all in one transaction, in the order of the members.
struct turn {
  // Runs that are over. Their tasks are removed.
  std::vector<ticket> finished = {};
  // A task that has been declared anew during its run waits for its new point instead of the retry. Repeating that a task is
  // dead, for the same ticket and reason, changes nothing, and is done: nobody else has ended the task.
  std::vector<failure> failed = {};
  // Claims of repeated tasks that are over, whether or not their run has begun. Unless the task has been declared anew
  // meanwhile, it waits for the next point.
  std::vector<passage> passed = {};
  // Runs that have begun, but must not be executed here after all. Their tasks wait again, and the attempt no longer
  // counts.
  std::vector<ticket> unstarted = {};
  // Tasks claimed but not begun. They wait again.
  std::vector<ticket> returned = {};
  // Runs in progress. Their leases are counted from now.
  std::vector<ticket> renewed = {};
  // Runs that have begun and whose end is not reported. If less than half of a lease is left by the engine's clock, which may have been
  // set, it is counted from now: the claim of this turn must not find what this session runs expired.
  std::vector<ticket> kept = {};
  // Tasks whose runs should begin. This counts an attempt and starts the lease from now. Repeating it for the same
  // ticket changes only the lease. A task stays claimed if it is not due by the engine's clock, which may have been
  // set; if its queue is paused; or if another task of its lane has an earlier place, or runs. Then nothing changes.
  std::vector<ticket> begun = {};
  // Those of them whose tasks have lanes. (It costs more to exclude others of the lane.)
  std::vector<ticket> in_lanes = {};
  // The points that the runs of the repeated tasks among these are for. If that of a task changes when its run begins,
  // the task is due at the point. (It keeps its place in its lane.)
  std::vector<pointed> points = {};
  // Runs that have begun: which of them have been cancelled, or are no longer this session's?
  std::vector<ticket> watched = {};
  // Return all claims of this session that have not begun, because the answer to an earlier turn was lost.
  bool adopt = false;
  // Claim at most this many tasks that are due within the window, or whose lease has run out. Of a lane only the first
  // task is claimed, and that only while none of the lane runs.
  std::size_t claim_up_to = 0;
  // The claim ends with the task whose payload reaches this number of bytes.
  std::size_t claim_bytes = unlimited;
  // Tasks with one of these schedules are not claimed, as this dispatcher cannot read them.
  std::vector<std::string> unreadable = {};

  /// Whether a task is given up, or for a point.
  bool tells_death() const noexcept {
    return std::ranges::any_of(failed, [](const failure& f) { return !f.retry_after; }) ||
           std::ranges::any_of(passed, &passage::given_up);
  }
  /// Whether something is to be done about runs that have begun.
  bool concerns_runs() const noexcept {
    return !finished.empty() || !failed.empty() || !passed.empty() || !unstarted.empty() ||
           !renewed.empty() || !kept.empty() || !watched.empty();
  }
};

/// Which of these the database has done. A ticket that is in none of these lists belonged to another dispatcher,
/// or its task had been cancelled or moved.
struct turn_result {
  std::vector<ticket> finished, failed, passed, renewed;
  std::vector<ticket> begun;
  std::vector<ticket> early;  // not begun, but still claimed
  // The failed and passed tasks that had been cancelled during the run: neither tried again nor kept.
  std::vector<ticket> removed;
  std::vector<ticket> cancelled;  // of the watched ones: also those that are no longer this session's
  // Left unchanged, because another transaction has locked their rows, or has just changed them. Or they should begin, and
  // another transaction has a later held task of their lane. The request must be repeated. (Renewals are not listed here.)
  std::vector<ticket> locked;
  std::vector<claim> claimed;  // including the adopted ones
  // Dead, because the lease of their last attempt ran out; without payloads. (A repeated task is claimed instead, as its
  // dispatcher finds the next point.)
  std::vector<task> expired;
  // The claim has met tasks behind others of their lanes, and the next one will not. Or it has ended tasks that others
  // of their lanes waited for. Or it has not looked everywhere, or has missed tasks whose rows somebody changed meanwhile.
  // So the next one may find tasks that this one has not found.
  bool may_have_more = false;
};

/// The part of dispatcher_options that the database needs.
struct claim_rules {
  std::vector<std::string> queues;
  duration window;
  duration lease;
  int max_attempts;
};

/// A dispatcher's connection. All calls except interrupt() come from one thread.
class session {
 public:
  virtual ~session() = default;
  /// Executes one transaction. Reconnects if the connection broke. Throws store_error; unless perhaps_done(), nothing
  /// was done. A crash of the server (SQLite: of the host) may undo the last turns of all sessions, each with all that
  /// were committed after it; but none that is older than a change by a store (PostgreSQL: or a turn that has claimed, or has
  /// given up a task).
  /// So after a reconnect, a turn that concerns runs throws once, unless a turn has adopted since: the beginnings of the
  /// runs must be repeated first.
  virtual turn_result take(const turn& what) = 0;
  /// Waits until interrupt() has been called since the last wait, or until (PostgreSQL) somebody else has submitted,
  /// moved, revived or handed back a task that is due soon, has resumed a queue, has let the first task of a lane go, or
  /// has cancelled a run. Returns true in the latter case, or if that may have happened while there was no connection:
  /// there may be tasks to claim, and runs to watch. Does not throw. Without a connection it waits only for interrupt();
  /// take() will reconnect after a while.
  virtual bool wait() = 0;
  /// Whether there may be tasks to claim of which wait() does not know: because somebody else has changed the database
  /// since the last call (SQLite), or because a session has ended or died. What that held, and had not begun, is freed by
  /// this call, or by a later one where another open transaction has changed it. Cheap, unless there was such a session.
  /// Does not throw: take() finds out whether the connection is good.
  virtual bool changed() = 0;
  /// How often changed() should be called.
  virtual duration look_every() const = 0;
  /// Ends the wait in progress, or else the next one. May be called from any thread.
  virtual void interrupt() noexcept = 0;
};

/// A store's database. All members may be called from any thread. `in` is the caller's connection and transaction, or
/// null.
class engine {
 public:
  virtual ~engine() = default;

  /// Whether this process is a child made by fork(). The connections are then the parent's: if the child used or closed
  /// one, the parent's session would break or end.
  bool is_copy() const noexcept { return getpid() != process_; }
  /// Returns *this. Throws store_error in a child.
  engine& own() {
    if (is_copy())
      throw store_error(
          "rondo: the parent of this process opened this store before fork(): it cannot be used here");
    return *this;
  }
  /// Keeps the object until the process ends, unless somebody else destroys it.
  void keep(std::shared_ptr<engine> self) noexcept { self_ = std::move(self); }

  virtual std::int64_t submit(const due_time& due, const submission& what, const transaction* in) = 0;
  /// Precondition: each submission is valid. `all` may be empty.
  virtual std::vector<std::int64_t> submit_all(std::span<const planned> all, const transaction* in) = 0;
  /// Precondition: the task is valid. Throws std::invalid_argument if its schedule has no point later than now.
  virtual std::int64_t repeat(const repeated& what, const transaction* in) = 0;
  virtual bool cancel(std::int64_t id, const transaction* in) = 0;
  virtual bool cancel(const std::string& queue, const std::string& key, const transaction* in) = 0;
  virtual bool reschedule(std::int64_t id, const due_time& due, const transaction* in) = 0;
  virtual bool reschedule(const std::string& queue, const std::string& key, const due_time& due,
                          const transaction* in) = 0;
  virtual std::optional<task> find(std::int64_t id, const transaction* in) = 0;
  virtual std::optional<task> find(const std::string& queue, const std::string& key,
                                   const transaction* in) = 0;
  virtual void pause(const std::string& queue) = 0;
  virtual void resume(const std::string& queue) = 0;
  virtual bool paused(const std::string& queue) = 0;
  virtual std::vector<listed> list(const std::string& queue, std::optional<task_state> only,
                                   std::int64_t after_id, std::size_t limit) = 0;
  virtual bool retry(std::int64_t id) = 0;
  /// `owner` is a unique name of the session, for operators to read. Others see when the session has ended.
  virtual std::unique_ptr<session> connect(const std::string& owner, const claim_rules& rules) = 0;

 private:
  const pid_t process_ = getpid();
  std::shared_ptr<engine> self_;
};

/// As databases keep it: in seconds, or null.
inline std::optional<std::int64_t> offset_of(const zoned_point& p) {
  return p.offset ? std::optional<std::int64_t>(p.offset->count()) : std::nullopt;
}

/// For databases, which count with a sign.
inline std::int64_t in_64_bits(std::size_t n) {
  return static_cast<std::int64_t>(std::min<std::size_t>(n, std::numeric_limits<std::int64_t>::max()));
}

/// A longer payload has a row of its own in rondo_payload, which the changes of its task's row do not rewrite. (For a
/// short one, a row of its own would cost more than that saves.)
inline constexpr std::size_t longest_inline_payload = 256;  // bytes

inline bool lies_apart(const std::string& payload) { return payload.size() > longest_inline_payload; }

/// Submissions due within this time wake the dispatchers of other processes, if the engine can do that. Dispatchers
/// check by themselves at least once in every half of it.
inline constexpr duration soon = std::chrono::seconds(5);

}  // namespace rondo::durable::detail
