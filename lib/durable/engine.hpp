// What a database does for stores and dispatchers. SQLite and PostgreSQL each derive from these two classes; everything
// above them is the same for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <rondo/durable.hpp>

namespace rondo::durable::detail {

/// When a task is due: so long from the engine's now, or at a time of its clock.
using due_time = std::variant<duration, wall_time>;

/// A claim: whoever changes the task later has to have both.
struct ticket {
  std::int64_t id = 0;
  std::int64_t fence = 0;
  friend auto operator<=>(const ticket&, const ticket&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A task that this session has claimed, and the time until it is due, by the engine's clock: not positive if it is.
struct claim {
  task what;
  duration remaining;
};

/// A run that failed.
struct failure {
  ticket of;
  std::optional<duration> retry_after;  // none: the task is dead
  std::string reason;                   // UTF-8; empty unless the task is dead
};

/// What a dispatcher has for its database: all of it is one transaction, in the order of the members.
struct turn {
  // Runs that are over: their tasks are removed.
  std::vector<ticket> finished = {};
  std::vector<failure> failed = {};
  // Begun, and not to be run here after all: to wait again, with one attempt less.
  std::vector<ticket> unstarted = {};
  // Claimed and not begun: to wait again.
  std::vector<ticket> returned = {};
  // Running: their leases are counted from now.
  std::vector<ticket> renewed = {};
  // Their runs are to begin: counts an attempt, the lease is counted from now. Again for the same ticket: changes nothing
  // but the lease.
  std::vector<ticket> begun = {};
  // The answer of an earlier turn got lost: return all claims of this session that have not begun.
  bool adopt = false;
  // This many tasks due within the window, or whose lease has run out.
  std::size_t claim_up_to = 0;
};

/// Which of these the database has done. What is neither here nor `locked` was another's by then, or had been cancelled or
/// moved.
struct turn_result {
  std::vector<ticket> finished, failed, renewed;
  std::vector<ticket> begun;
  // Of the failed ones those that had been cancelled meanwhile: neither tried again nor kept.
  std::vector<ticket> removed;
  // Left as they were, as an open transaction of somebody else has changed them: to be said again. (Not those to be renewed.)
  std::vector<ticket> locked;
  std::vector<claim> claimed;  // those adopted included
  std::vector<task> expired;   // dead, as their last attempt's lease ran out
};

/// The part of dispatcher_options that the database needs.
struct claim_rules {
  std::vector<std::string> queues;
  duration window;
  duration lease;
  int max_attempts;
};

/// A dispatcher's connection. All calls but interrupt() come from one thread.
class session {
 public:
  virtual ~session() = default;
  /// One transaction. Makes the connection again if it broke. Throws store_error: if not perhaps_done(), nothing was done.
  virtual turn_result take(const turn& what) = 0;
  /// Waits until interrupt() was called since the last wait, or somebody has submitted what is due soon (true: look). Does
  /// not throw, and without a connection waits for interrupt() alone: take() will make one, after a while.
  virtual bool wait() = 0;
  /// Whether somebody else has changed the database since it was last asked, where wait() cannot tell (SQLite). Cheap. Does
  /// not throw: whether the connection is good is found out by take().
  virtual bool changed() = 0;
  /// How often changed() should be asked. duration::max(): not at all.
  virtual duration look_every() const = 0;
  /// Ends a wait, or the next one. From any thread.
  virtual void interrupt() noexcept = 0;
};

/// A store's database. From any thread. `in`: the caller's connection and transaction, or null.
class engine {
 public:
  virtual ~engine() = default;
  virtual std::int64_t submit(const due_time& due, const submission& what, const transaction* in) = 0;
  virtual bool cancel(std::int64_t id, const transaction* in) = 0;
  virtual bool cancel(const std::string& queue, const std::string& key, const transaction* in) = 0;
  virtual bool reschedule(std::int64_t id, const due_time& due, const transaction* in) = 0;
  virtual std::optional<task> find(std::int64_t id, const transaction* in) = 0;
  /// `owner`: a name that no other session has, for operators to read.
  virtual std::unique_ptr<session> connect(const std::string& owner, const claim_rules& rules) = 0;
};

/// Submissions due within this time wake the dispatchers of other processes, where the engine can. Dispatchers look by
/// themselves at least every half of it.
inline constexpr duration soon = std::chrono::seconds(5);

}  // namespace rondo::durable::detail
