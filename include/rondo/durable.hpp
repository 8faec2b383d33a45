// Delayed tasks that outlive the process and are shared by several: kept in SQLite or PostgreSQL. A library of its own,
// rondo-durable; lib/durable/README.md compares it with its alternatives and is the operator's page.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rondo/export.hpp>
#include <rondo/histogram.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

struct sqlite3;  // as <sqlite3.h> declares it
struct pg_conn;  // PGconn of <libpq-fe.h>

namespace rondo::durable {

/// Wall-clock times, by the engine's clock: that of the database server, or for SQLite that of the host.
using wall_time = std::chrono::system_clock::time_point;

/// The database refused or could not be reached, its schema is not one that this version knows, or the URL is no
/// store's. The message says which.
class RONDO_EXPORT store_error : public std::runtime_error {
 public:
  /// What what() and perhaps_done() are.
  explicit store_error(const std::string& what, bool perhaps_done = false)
      : std::runtime_error(what), perhaps_done_(perhaps_done) {}
  /// Whether the change may have been made all the same: the connection broke after it was sent and before the answer.
  /// A submission with a key may then be sent again: as long as the first is live, there is no second one.
  bool perhaps_done() const noexcept { return perhaps_done_; }

 private:
  bool perhaps_done_;
};

/// A submission names a key that a live task of its queue has, and does not ask to replace it.
class RONDO_EXPORT key_taken : public std::runtime_error {
 public:
  /// What what() and id() are.
  key_taken(const std::string& what, std::int64_t id) : std::runtime_error(what), id_(id) {}
  /// That task.
  std::int64_t id() const noexcept { return id_; }

 private:
  std::int64_t id_;
};

/// What is to be done later. `queue` and `key` are UTF-8 without zero bytes, of at most 255 bytes, and the queue is not
/// empty; the payload is any bytes, at most 64 MiB. Otherwise: std::invalid_argument.
struct submission {
  std::string queue = "default";  ///< the dispatchers that have this queue share its tasks
  std::string payload = {};       ///< for the handler
  std::string key = {};           ///< unless it is empty: at most one live task of a queue has it
  bool replace =
      false;  ///< cancels the live task that has the key; otherwise that one refuses the submission
};

/// A task that waits, is held by a dispatcher, or runs: a *live* one.
struct task {
  std::int64_t id;  ///< greater than zero
  ///@{
  /// As it was submitted.
  std::string queue, key, payload;
  ///@}
  wall_time due;  ///< of this attempt
  int attempt;    ///< how often a run of it has begun, this one included: 0 before the first
  /// Greater with each dispatcher that claims the task; with SQLite a power cut may undo the last claims, whose fences are
  /// then given again. What a handler changes elsewhere is safe against a run that goes on after its lease has run out, if
  /// it refuses a fence smaller than one it has seen for that task.
  std::int64_t fence;
};

/// A transaction of yours, in which a store's calls take part: they take effect when you commit. The connection must be
/// to the store's own database, and nobody else uses it during the call.
class RONDO_EXPORT transaction {
 public:
  ///@{
  /// Not owned. Null: std::invalid_argument.
  transaction(
      sqlite3* connection);  // NOLINT(google-explicit-constructor): so that calls take the connection itself
  transaction(pg_conn* connection);  // NOLINT(google-explicit-constructor)
  ///@}
  ///@{
  /// The connection. Null: it is one of the other engine.
  sqlite3* sqlite() const noexcept { return sqlite_; }
  pg_conn* postgresql() const noexcept { return postgresql_; }
  ///@}

 private:
  sqlite3* sqlite_ = nullptr;
  pg_conn* postgresql_ = nullptr;
};

namespace detail {
class engine;
struct store_access;
}  // namespace detail

/// Tasks in a database. All members may be called from any thread. Each call is a transaction of its own, durable when it
/// returns; with a `transaction` it is a part of that one instead. Each call takes one or two statements.
///
/// Throws store_error for whatever the database refuses: nothing has changed, except where perhaps_done() says so. A
/// connection that broke is made again by the next call. SQLite may undo all of your transaction when the disk is full:
/// sqlite3_get_autocommit() tells. NaN as a delay: std::invalid_argument.
class RONDO_EXPORT store {
 public:
  /// Opens "sqlite:FILE" or "postgresql://…" (as libpq reads it), and creates or migrates the schema. Any number of
  /// processes may do so at once. store_error: the database cannot be reached; its schema is newer than this version or
  /// is damaged; the URL is neither, or names an engine that this library was built without.
  static std::unique_ptr<store> open(const std::string& url);
  ~store();
  store(const store&) = delete;
  store& operator=(const store&) = delete;

  ///@{
  /// Adds a task, and returns its id: greater than zero, and never used again. A delay counts on the engine's clock;
  /// zero, negative, or a time that has gone by means at once. Throws key_taken.
  std::int64_t submit_after(any_duration delay, const submission& what);
  std::int64_t submit_after(transaction in, any_duration delay, const submission& what);
  std::int64_t submit_at(wall_time due, const submission& what);
  std::int64_t submit_at(transaction in, wall_time due, const submission& what);
  ///@}

  ///@{
  /// Removes a task: no run of it begins any more. True if there was one and none is in progress. False if there is none,
  /// or a run of it has begun: that run goes on, and is the last even if it fails.
  bool cancel(std::int64_t id);
  bool cancel(transaction in, std::int64_t id);
  bool cancel(const std::string& queue, const std::string& key);
  bool cancel(transaction in, const std::string& queue, const std::string& key);
  ///@}

  ///@{
  /// Moves a task that no run has begun of, or that waits to be tried again. False: there is none.
  bool reschedule_after(std::int64_t id, any_duration delay);
  bool reschedule_after(transaction in, std::int64_t id, any_duration delay);
  bool reschedule_at(std::int64_t id, wall_time due);
  bool reschedule_at(transaction in, std::int64_t id, wall_time due);
  ///@}

  ///@{
  /// A live task, as it is in the database now. One that was cancelled while it runs has no key any more.
  std::optional<task> find(std::int64_t id);
  std::optional<task> find(transaction in, std::int64_t id);
  ///@}

 private:
  friend struct detail::store_access;
  explicit store(std::shared_ptr<detail::engine> engine);

  std::shared_ptr<detail::engine> engine_;  // shared with dispatchers, which may outlive this object
};

/// Configures a dispatcher. New members are only ever appended. A member out of its range: std::invalid_argument.
struct dispatcher_options {
  std::vector<std::string> queues = {"default"};  ///< at least one
  /// How far ahead tasks are claimed, to wait on the wheel. Positive. Twice in this time, and at least every 2.5 s, the
  /// database is looked at. A longer one makes fewer and larger claims, and a process that dies delays more tasks.
  duration window = std::chrono::seconds(5);
  /// For how long after its due time, or the beginning of its run, a claimed task is left alone. A run that takes longer
  /// has its lease renewed. So a task whose process dies is run again after this time. At least 100 ms.
  duration lease = std::chrono::seconds(30);
  std::size_t max_held = 1000;  ///< tasks claimed and not yet ended. Positive
  int max_attempts = 10;        ///< runs, those that a lease ended included; then the task is dead. Positive
  ///@{
  /// After the n-th failed attempt a task waits for a random time between zero and first_retry * 2^(n-1), at most
  /// longest_retry ("full jitter": Brooker, Exponential Backoff and Jitter, 2015). Not negative.
  duration first_retry = std::chrono::seconds(1);
  duration longest_retry = std::chrono::minutes(10);
  ///@}
  std::size_t threads = 4;  ///< that run the handler. Positive
  /// Called with one line for each failed attempt, each lease that was lost, and each time that the database failed; on
  /// any thread. Empty: std::cerr.
  std::function<void(const std::string&)> on_error = {};
};

/// Counts since the dispatcher was made.
struct dispatcher_statistics {
  std::uint64_t claimed = 0;    ///< tasks taken from the database
  std::uint64_t held = 0;       ///< now: claimed, and not yet begun
  std::uint64_t running = 0;    ///< now: in the handler, or about to be
  std::uint64_t fired = 0;      ///< calls of the handler
  std::uint64_t completed = 0;  ///< tasks ended by a run, and removed
  std::uint64_t retried = 0;    ///< failed attempts after which another follows
  std::uint64_t dead = 0;       ///< tasks given up, kept in the database with the reason
  std::uint64_t withdrawn =
      0;  ///< claimed tasks that were cancelled or moved before their run began, or cancelled during one that failed
  std::uint64_t leases_lost =
      0;  ///< runs that ended when the task was another's, or that did not begin for that
  std::uint64_t handed_back = 0;  ///< by stop()
  std::uint64_t turns = 0;        ///< transactions
  std::uint64_t failures = 0;     ///< transactions that failed, and were made again
  histogram lateness;             ///< of each call of the handler: its beginning − its due time
  histogram run_time;             ///< of each call of the handler
};

/// Runs the due tasks of a store: claims those of the next short window, lets them wait on the scheduler's wheel, and
/// calls the handler with each when its time has come. Any number of dispatchers, in any number of processes and (with
/// PostgreSQL) on any number of hosts, may share the queues of one database.
///
/// - **At least once.** A task is removed when its handler has returned. If the process dies before, the lease runs out
///   and another dispatcher runs the task again; so it may if a process stands still for longer than the lease. A handler
///   is safe if it does its work in one transaction with a note that the task's id is done, or refuses smaller fences.
/// - Never early, by the engine's clock. Late by the scheduler's tick, a transaction of the database, and the wait for a
///   thread. A task whose process died is late by the lease at most, plus half a window.
/// - The steps of a node's wall clock do not matter, except with SQLite, whose clock it is.
/// - Handlers run on threads of the dispatcher, several at a time.
/// - While the database cannot be reached the dispatcher tries again, with backoff; nothing is lost.
/// - The scheduler is to be stopped after the dispatcher. Otherwise the dispatcher does without time: what it holds is left
///   to the leases or handed back, runs in progress are reported, but their leases are not renewed.
class RONDO_EXPORT dispatcher {
 public:
  /// A handler that throws has failed: it is tried again, up to max_attempts. The scheduler must outlive the dispatcher;
  /// the store need not. Throws store_error and what the scheduling calls throw.
  dispatcher(scheduler& on, store& from, std::function<void(const task&)> handler,
             dispatcher_options options = {});
  ~dispatcher();  ///< stop(). From inside the handler: std::terminate()
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// Hands back the tasks whose run has not begun, waits for those that run, and reports these to the database. If that
  /// does not answer, it tries again for two seconds, and ends with the attempt that is then in progress: some 15 s
  /// more where a server hangs. What the database was not told is left to the leases. Idempotent; from inside the handler:
  /// std::logic_error. While a call on the scheduler's driver, as from an inline task, waits for runs, their leases are not
  /// renewed.
  void stop();

  /// Takes time in proportion to the histograms' buckets. From any thread.
  dispatcher_statistics stats() const;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rondo::durable
