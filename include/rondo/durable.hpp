// Delayed tasks that outlive the process and that several processes share, kept in SQLite or PostgreSQL. A separate
// library, rondo-durable; lib/durable/README.md compares it with its alternatives, lib/durable/operators.md is for operators.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <version>
#include <vector>

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

#include <rondo/cron_syntax.hpp>
#include <rondo/export.hpp>
#include <rondo/histogram.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/time.hpp>

struct sqlite3;  // as <sqlite3.h> declares it
struct pg_conn;  // PGconn of <libpq-fe.h>

namespace rondo::durable {

/// Wall-clock times on the engine's clock: that of the database server or, for SQLite, of the host. The database has
/// microseconds: due times are rounded up to them.
using wall_time = rondo::wall_time;

/// The database refused a call or could not be reached, this version does not know its schema, or the URL does not name
/// a store. The message says which.
class RONDO_EXPORT store_error : public std::runtime_error {
 public:
  /// Sets the results of what() and perhaps_done().
  explicit store_error(const std::string& what, bool perhaps_done = false)
      : std::runtime_error(what), perhaps_done_(perhaps_done) {}
  /// Whether the change may have been made nevertheless: the connection broke after it was sent and before the answer
  /// arrived. A submission with a key can then be sent again: as long as the first one is live, there is no second one.
  bool perhaps_done() const noexcept { return perhaps_done_; }

 private:
  bool perhaps_done_;
};

/// A live task of the queue has the key already, and the call does not ask to replace that task.
class RONDO_EXPORT key_taken : public std::runtime_error {
 public:
  /// Sets the results of what() and id().
  key_taken(const std::string& what, std::int64_t id) : std::runtime_error(what), id_(id) {}
  /// The id of that task; 0 if it is another task of the same list.
  std::int64_t id() const noexcept { return id_; }

 private:
  std::int64_t id_;
};

/// A task to be run later. `queue`, `key` and `lane` are UTF-8 without zero bytes, of at most 255 bytes, and the queue
/// is not empty; the payload is arbitrary bytes, at most 64 MiB; `max_attempts` is not negative. Otherwise submitting
/// throws std::invalid_argument.
struct submission {
  std::string queue = "default";  ///< the dispatchers that have this queue share its tasks
  std::string payload = {};       ///< for the handler
  std::string key = {};           ///< if not empty, at most one live task of a queue has this key
  /// Whether to cancel the live task that has the key. If false, such a task makes the submission fail.
  bool replace = false;
  /// If not empty, the task runs alone among the tasks of its queue with the same lane, on whatever node, and after all
  /// of them that have an earlier place: a smaller due time, or the same and a smaller id. A task that fails or snoozes
  /// keeps its place, so the lane waits for it until it is done, dead or cancelled; one that is moved takes the place of
  /// its new due time. A task that is submitted, moved or revived to a place before one whose run has begun runs after
  /// that. As elsewhere, a run that continues after its lease has expired can overlap the next one.
  std::string lane = {};
  int max_attempts = 0;  ///< overrides dispatcher_options::max_attempts, unless zero
};

/// A submission in a list, and when its task is due.
struct planned {
  submission what = {};  ///< as for submit_after() and submit_at()
  /// A delay on the engine's clock, or a time of that clock. (One that is finer than a nanosecond needs any_wall_time.)
  std::variant<duration, wall_time> when = duration::zero();
};

/// A *live* task: it waits, is held by a dispatcher, or runs.
struct task {
  std::int64_t id;  ///< greater than zero
  ///@{
  /// As it was submitted.
  std::string queue, key, payload;
  ///@}
  wall_time due;  ///< the due time of this attempt
  int attempt;    ///< the number of its runs that have begun, including this one: 0 before the first
  /// Grows each time a dispatcher claims the task, by any amount: it is at least the time of the claim, in milliseconds
  /// since 1970. So it is greater even than that of a claim which the database has lost (in a failover, by a restored
  /// backup, or with SQLite in a power failure), unless the engine's clock was set back. (With PostgreSQL, a failover
  /// makes it greater even then.) To protect what a handler changes elsewhere against a run that continues after its
  /// claim has been lost or its lease has expired, refuse a fence smaller than one already seen for the task.
  std::int64_t fence;
  /// Of a repeated task: the point of its schedule that this run is for.
  std::optional<wall_time> point = {};
};

namespace detail {
class engine;
struct outcome_access;
struct schedule_access;
struct schedule_rule;
struct store_access;
}  // namespace detail

/// When a repeated task is due. A value type: copies share their contents and may be used from any thread. A moved-from
/// schedule may only be destroyed or assigned to.
class RONDO_EXPORT schedule {
 public:
  /// At the end of each period, from the moment when the task is declared. The period is rounded up to a microsecond.
  /// Throws std::invalid_argument if it is not positive, or NaN.
  static schedule every(any_duration period);
  /// At the local times of a zone that an expression names, as rondo::cron() of <rondo/calendar.hpp> reads it: what that
  /// says about zones, local times that do not exist or occur twice, and exceptions, holds here. Blanks are
  /// interchangeable. Throws store_error if this library was built without rondo-calendar.
  static schedule cron(const std::string& expression, const std::string& zone = "UTC",
                       cron_syntax syntax = cron_syntax::standard);
  /// "every 90s", "cron 30 6 * * * Europe/Berlin", "cron quartz 0 30 6 * * ? Europe/Berlin": it names the syntax unless that
  /// is the standard one. Schedules with the same text are the same.
  std::string text() const;

 private:
  friend struct detail::schedule_access;
  explicit schedule(std::shared_ptr<const detail::schedule_rule> rule) noexcept : rule_(std::move(rule)) {}

  std::shared_ptr<const detail::schedule_rule> rule_;
};

/// What becomes of points that went by while no dispatcher was there, or during a run.
enum class missed_points {
  run_once,  ///< one run, for the newest of them
  run_all,   ///< a run for each, in order
  skip       ///< only those are run that are at most one dispatcher_options::window late
};

/// A task that is run at each point of a schedule. Of a submission it has these members, with the same limits; but the
/// key must not be empty. (`queue` and `key` identify the task.)
struct repeated {
  ///@{
  /// As in a submission.
  std::string queue = "default";
  std::string key;
  std::string payload = {};
  ///@}
  schedule when;                                   ///< its points
  missed_points missed = missed_points::run_once;  ///< what becomes of points that went by
  std::string lane = {};                           ///< as in a submission
};

/// Where a task is between its submission and its end.
enum class task_state {
  waiting,  ///< to become due, to be tried again, or to be claimed
  held,     ///< claimed by a dispatcher, which has not begun it
  running,  ///< begun; possibly cancelled since
  dead      ///< given up, and kept
};

/// What list() returns.
struct listed : task {
  task_state state;   ///< where it was at the time of the call
  std::string owner;  ///< the dispatcher that holds or runs it: "host:process:number"
  /// Why it is dead. Of a repeated task: why the last point that is over was given up; empty if it was not.
  std::string reason;
};

/// A transaction of yours in which a store's calls take part: they take effect when you commit. The connection must be
/// to the store's own database, and nobody else may use it during the call.
class RONDO_EXPORT transaction {
 public:
  ///@{
  /// Does not own the connection. Throws std::invalid_argument if it is null.
  transaction(
      sqlite3* connection);  // NOLINT(google-explicit-constructor): so that calls take the connection itself
  transaction(pg_conn* connection);  // NOLINT(google-explicit-constructor)
  ///@}
  ///@{
  /// The connection. Null if it is a connection of the other engine.
  sqlite3* sqlite() const noexcept { return sqlite_; }
  pg_conn* postgresql() const noexcept { return postgresql_; }
  ///@}

 private:
  sqlite3* sqlite_ = nullptr;
  pg_conn* postgresql_ = nullptr;
};

/// Tasks in a database. All members may be called from any thread. Each call is a transaction of its own, durable when
/// the call returns; with a `transaction` it is part of that one instead. Each call takes one or two statements.
///
/// Throws store_error for whatever the database refuses; nothing has changed then, except where perhaps_done() says so.
/// The next call reconnects after a broken connection. With PostgreSQL, a call gives up and the connection counts as
/// broken when nothing has been sent or received for 15 s, also if the server waits for a lock. (A call in a
/// transaction of yours waits without limit.) SQLite may roll back all of your transaction when the disk is full;
/// sqlite3_get_autocommit() reports this. Throws std::invalid_argument if a delay or a time is NaN.
///
/// In a child process made by fork(), a store of the parent can only be destroyed; calls throw store_error, because the
/// connections are the parent's. Open another store there, with SQLite only in a file that no connection of the parent
/// had open: SQLite's locks do not work in the child. open() refuses a file of which the parent had a store.
class RONDO_EXPORT store {
 public:
  /// Opens "sqlite:FILE" or "postgresql://…" (parsed by libpq), and creates or migrates the schema. Any number of
  /// processes may do so at once. Throws store_error if the database cannot be reached, if its schema is damaged or
  /// newer than this version, if the URL has neither form, if this library was built without the engine that the URL
  /// names, or if it notices that a pooler of transactions lies between it and PostgreSQL (which then hears no notification).
  static std::unique_ptr<store> open(const std::string& url);
  ~store();
  store(const store&) = delete;
  store& operator=(const store&) = delete;

  ///@{
  /// Adds a task and returns its id, which is greater than zero and never reused; except that with SQLite, an id returned
  /// within a transaction of yours that is then rolled back is given again. A delay counts on the engine's clock.
  /// The task is due at once if the delay is zero or negative or the time is in the past. Throws key_taken.
  std::int64_t submit_after(any_duration delay, const submission& what);
  std::int64_t submit_after(transaction in, any_duration delay, const submission& what);
  std::int64_t submit_at(any_wall_time due, const submission& what);
  std::int64_t submit_at(transaction in, any_wall_time due, const submission& what);
  ///@}

  ///@{
  /// Adds all tasks or none, in one transaction, and returns their ids in the order of the list. Throws key_taken for
  /// the first submission whose key a live task has that it does not ask to replace, or whose key is that of an earlier
  /// one in the list. If one is not valid, the message of std::invalid_argument says which. Needs memory for a part of
  /// the list, about 16 MB, in addition to the list.
  std::vector<std::int64_t> submit_all(std::span<const planned> all);
  std::vector<std::int64_t> submit_all(transaction in, std::span<const planned> all);
  ///@}

  ///@{
  /// Declares a repeated task, and returns its id. Any number of processes may do so, at each start: if the task exists
  /// and is equal, nothing changes. If it exists and differs, it gets the new contents under the same id, and goes on with
  /// the first point of the new schedule that is later than now; a run in progress is then the last of the old contents,
  /// even if it fails. cancel() ends the task. Throws key_taken if a task that is not repeated has the key, and
  /// std::invalid_argument also if the schedule has no point before the end of the clock.
  ///
  /// - The task is *one* task, with one id. Each point is run at least once, unless it went by and `missed` passes
  ///   it over. One dispatcher at a time runs it, and runs never overlap, as far as leases go: as for other tasks.
  /// - Failed attempts are retried, for the same point. When it is done, or given up, the task goes on with the next one
  ///   and is never dead; dispatcher_statistics::dead, on_error and on_dead tell of a point that was given up.
  /// - A run that is snoozed, or moved by reschedule_*(), is still for the same point. The schedule does not move.
  std::int64_t repeat(const repeated& what);
  std::int64_t repeat(transaction in, const repeated& what);
  ///@}

  ///@{
  /// Removes a task: no further run of it begins, and the stop token of one in progress is requested. Returns true if
  /// the task existed and no run of it is in progress. Returns false if it does not exist, or if a run of it is in
  /// progress: that run continues, and is the last even if it fails.
  bool cancel(std::int64_t id);
  bool cancel(transaction in, std::int64_t id);
  bool cancel(const std::string& queue, const std::string& key);
  bool cancel(transaction in, const std::string& queue, const std::string& key);
  ///@}

  ///@{
  /// Moves a task of which no run has begun, or which waits to be retried. Returns false if there is none.
  bool reschedule_after(std::int64_t id, any_duration delay);
  bool reschedule_after(transaction in, std::int64_t id, any_duration delay);
  bool reschedule_at(std::int64_t id, any_wall_time due);
  bool reschedule_at(transaction in, std::int64_t id, any_wall_time due);
  bool reschedule_after(const std::string& queue, const std::string& key, any_duration delay);
  bool reschedule_after(transaction in, const std::string& queue, const std::string& key, any_duration delay);
  bool reschedule_at(const std::string& queue, const std::string& key, any_wall_time due);
  bool reschedule_at(transaction in, const std::string& queue, const std::string& key, any_wall_time due);
  ///@}

  ///@{
  /// Returns a live task as it is in the database now. A task that was cancelled during its run no longer has a key.
  std::optional<task> find(std::int64_t id);
  std::optional<task> find(transaction in, std::int64_t id);
  std::optional<task> find(const std::string& queue, const std::string& key);
  std::optional<task> find(transaction in, const std::string& queue, const std::string& key);
  ///@}

  ///@{
  /// A paused queue is neither claimed from nor does a run of it begin, on any node, until it is resumed; only a
  /// transaction of a dispatcher that is in progress when pause() returns may still begin some. Runs in progress go on,
  /// and tasks can be submitted, moved and cancelled. Idempotent. The queue need not have tasks.
  void pause(const std::string& queue);
  void resume(const std::string& queue);
  bool paused(const std::string& queue);
  ///@}

  /// Returns the first `limit` tasks of the queue with greater ids than `after_id`, all or only those in one state, in
  /// the order of their ids. The dead are found by an index; others take time proportional to the tasks of all queues
  /// between the ids.
  std::vector<listed> list(const std::string& queue, std::optional<task_state> only = {},
                           std::int64_t after_id = 0, std::size_t limit = 100);

  /// A dead task waits again, is due now, and no run of it counts any more. Returns false if there is no such dead
  /// task. Throws key_taken if a live task of the queue has got its key.
  bool retry(std::int64_t id);

 private:
  friend struct detail::store_access;
  explicit store(std::shared_ptr<detail::engine> engine);

  std::shared_ptr<detail::engine> engine_;  // shared with dispatchers, which may outlive this object
};

/// What becomes of a task after a run of it. (If the handler throws, the run has failed.)
class RONDO_EXPORT outcome {
 public:
  /// The task is done, and is removed.
  static outcome done() { return outcome(kind::done); }
  /// The task is due again after that time by the engine's clock, and this run does not count as an attempt. A delay
  /// that is negative is zero. Throws std::invalid_argument if it is NaN.
  static outcome snooze(any_duration delay) {
    outcome o(kind::snoozed);
    o.delay_ = delay;
    return o;
  }
  /// The task is dead at once, however many attempts are left. The first 1,000 bytes of the reason are kept.
  static outcome dead(std::string reason) {
    outcome o(kind::dead);
    o.reason_ = std::move(reason);
    return o;
  }

 private:
  friend struct detail::outcome_access;
  enum class kind { done, snoozed, dead };
  explicit outcome(kind k) noexcept : kind_(k) {}

  kind kind_;
  duration delay_{};
  std::string reason_;
};

/// What a dispatcher calls: any callable that takes (const task&) or (const task&, std::stop_token), and returns an
/// outcome, or anything else for outcome::done(). One that takes both gets the token. Where the library has no
/// std::stop_token, only the first form compiles.
class task_handler {
  template <class F>
  static constexpr bool takes_token =
#ifdef __cpp_lib_jthread
      std::invocable<F&, const task&, std::stop_token>;
#else
      false;
#endif

 public:
  ///@{
  /// From a callable, which must be copyable. `{}`, a null pointer or an empty std::function makes an empty handler.
  task_handler() = default;
  task_handler(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class F, class D = std::decay_t<F>>
  requires(!std::same_as<D, task_handler> && (std::invocable<D&, const task&> || takes_token<D>))
      // So that a dispatcher takes the callable itself. NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      task_handler(F&& f) {
    if (is_empty<D>(f)) return;
#ifdef __cpp_lib_jthread
    if constexpr (takes_token<D>)
      stoppable_ = [f = D(std::forward<F>(f))](const task& t, std::stop_token s) mutable {
        return result(f, t, std::move(s));
      };
    else
#endif
      plain_ = [f = D(std::forward<F>(f))](const task& t) mutable { return result(f, t); };
  }
  ///@}

#ifdef __cpp_lib_jthread
  /// Whether it takes a token.
  bool is_stoppable() const noexcept { return stoppable_ != nullptr; }
  /// Precondition: it is not empty. Throws what the callable throws.
  outcome operator()(const task& t, std::stop_token s) const {
    return is_stoppable() ? stoppable_(t, std::move(s)) : plain_(t);
  }
#else
  bool is_stoppable() const noexcept { return false; }
  outcome operator()(const task& t) const { return plain_(t); }
#endif
  /// Whether it is not empty.
  explicit operator bool() const noexcept { return plain_ != nullptr || is_stoppable(); }

 private:
  template <class F>
  static bool is_empty(const F& f) {
    if constexpr (std::is_assignable_v<F&, std::nullptr_t> && std::is_constructible_v<bool, const F&>)
      return !static_cast<bool>(f);
    else
      return false;
  }
  template <class F, class... Argument>
  static outcome result(F& f, const task& t, Argument... argument) {
    if constexpr (std::is_convertible_v<std::invoke_result_t<F&, const task&, Argument...>, outcome>) {
      return std::invoke(f, t, std::move(argument)...);
    } else {
      std::invoke(f, t, std::move(argument)...);
      return outcome::done();
    }
  }

  std::function<outcome(const task&)> plain_;
#ifdef __cpp_lib_jthread
  std::function<outcome(const task&, std::stop_token)> stoppable_;
#endif
};

/// The configuration of a dispatcher. New members are always appended. If a member is out of its range, the
/// dispatcher's constructor throws std::invalid_argument.
struct dispatcher_options {
  std::vector<std::string> queues = {"default"};  ///< at least one
  /// How far ahead tasks are claimed, to wait on the wheel. Must be positive. The database is checked twice in this
  /// time, and at least every 2.5 s. A longer window means fewer and larger claims, and more tasks that are delayed if
  /// a process dies.
  duration window = std::chrono::seconds(5);
  /// How long a claimed task is left alone after its due time or the beginning of its run. The lease of a run that
  /// takes longer is renewed. If a process dies, its tasks are therefore run again after this time. At least 100 ms.
  duration lease = std::chrono::seconds(30);
  std::size_t max_held = 1000;  ///< maximum number of tasks claimed and not yet ended. Must be positive
  /// Maximum number of runs, including those that a lease ended; then the task is dead. Must be positive.
  int max_attempts = 10;
  ///@{
  /// After the n-th failed attempt, a task waits for a random time between zero and first_retry * 2^(n-1), at most
  /// longest_retry ("full jitter": Brooker, Exponential Backoff and Jitter, 2015). Must not be negative.
  duration first_retry = std::chrono::seconds(1);
  duration longest_retry = std::chrono::minutes(10);
  ///@}
  std::size_t threads = 4;  ///< the number of threads that run the handler. Must be positive
  /// Called with one line for each failed attempt, each lost lease, each failure of the database, each claim that
  /// takes longer than a third of the lease, and once if a pooler of transactions is noticed, on any thread. If empty, the
  /// lines go to std::cerr.
  std::function<void(const std::string&)> on_error = {};
  /// Tasks are claimed only while the payloads of all tasks claimed and not yet ended have fewer bytes than this. So at
  /// most this many bytes and one payload are held. A claim may need as much again while it is received. Must be
  /// positive.
  std::size_t max_held_bytes = std::size_t{64} << 20;
  /// Called with each task that is given up, or for a point of a repeated one, and why, on the dispatcher's database
  /// thread: calls of the dispatcher wait for it, so it should be short. If the lease of the last attempt ran out,
  /// `payload` is empty: store::list() has it. What it throws goes to on_error.
  ///
  /// It is called after the database has noted that the task is dead, at most once for each such note. Not at all
  /// - if the process dies in between;
  /// - if the database's answer was lost, and somebody has revived or removed the task before the dispatcher could ask
  ///   again;
  /// - if the lease of the last attempt ran out, and the answer to the claim that found this was lost: no claim finds the
  ///   task again. store::list() has it, but dispatcher_statistics::dead does not count it. (For a point of a repeated task, the
  ///   call then comes.)
  ///
  /// Twice only
  /// - if the database has lost the note after the call: it went back to an earlier state (a failover, a backup), or with
  ///   SQLite the host crashed;
  /// - for a point of a repeated task, if the answer was lost, and another dispatcher took the point over meanwhile: the
  ///   call then comes even if a run of the other one has succeeded.
  std::function<void(const task&, const std::string& reason)> on_dead = {};
};

/// Counts since the dispatcher was created.
struct dispatcher_statistics {
  std::uint64_t claimed = 0;    ///< tasks taken from the database
  std::uint64_t held = 0;       ///< at present: claimed, and not yet begun
  std::uint64_t running = 0;    ///< at present: in the handler, or about to be
  std::uint64_t fired = 0;      ///< calls of the handler
  std::uint64_t completed = 0;  ///< runs that completed their task, or the point of a repeated one
  std::uint64_t retried = 0;    ///< failed attempts that are followed by another
  /// Tasks that were given up and are kept in the database with the reason, and points of repeated ones given up.
  std::uint64_t dead = 0;
  /// Claimed tasks that were cancelled or moved before their run began, or cancelled during a run that failed.
  std::uint64_t withdrawn = 0;
  /// Runs that ended after another dispatcher had claimed the task, or that did not begin because the lease had
  /// expired.
  std::uint64_t leases_lost = 0;
  std::uint64_t handed_back = 0;  ///< claimed tasks that stop() released to the database
  std::uint64_t turns = 0;        ///< transactions
  std::uint64_t failures = 0;     ///< transactions that failed and were repeated
  histogram lateness;             ///< of each call of the handler: its beginning − its due time
  histogram run_time;             ///< of each call of the handler: its end − its beginning
  std::uint64_t snoozed = 0;      ///< runs after which the task waits again, without an attempt
};

/// Runs the due tasks of a store: it claims the tasks of the next short window, lets them wait on the scheduler's
/// wheel, and calls the handler with each when it is due. Any number of dispatchers, in any number of processes and
/// (with PostgreSQL) on any number of hosts, may share the queues of one database.
///
/// - **At least once.** A task is removed when its handler has returned. If the process dies before that, the lease
///   expires and another dispatcher runs the task again; the same can happen if a process is stalled for longer than
///   the lease. A handler is safe if it does its work in one transaction with a record that the task's id is done, or
///   if it refuses a fence smaller than one already seen for the task.
/// - Tasks are never early on the engine's clock. They are late by up to one tick of the scheduler, plus a transaction
///   of the database and the wait for a thread. If a process dies, others run what it had claimed and not begun within
///   two seconds, or if they cannot see its death, as a task that it ran: late by at most the lease plus half a window.
/// - Steps of a node's wall clock do not matter, except with SQLite: there it is the engine's clock. When that clock (or
///   a PostgreSQL server's) is set back, all tasks wait until it shows their due time again, and the leases of a process
///   that then dies last longer by the step. When it is set forward, tasks that have become due run within a window;
///   if the step is longer than what is left of a lease, other dispatchers take over tasks whose runs are in progress,
///   and one whose last attempt it was is dead. A dispatcher never takes over what it runs itself.
/// - Handlers run on threads of the dispatcher, several at a time.
/// - While the database cannot be reached, the dispatcher retries with backoff; nothing is lost.
/// - Stop the dispatcher before the scheduler. Otherwise the dispatcher has no timers: tasks that it holds are left to
///   their leases or handed back, and runs in progress are reported but their leases are not renewed.
/// - A child process made by fork() has no threads of its parent's dispatcher. It can destroy its copy, which stops
///   nothing and keeps its memory until the child ends; stop() does nothing there, and stats() must not be called.
class RONDO_EXPORT dispatcher {
 public:
  /// A handler that throws has failed: the task is retried, up to max_attempts. A handler that takes a std::stop_token
  /// gets one for each run. It is requested when the task is cancelled or replaced, by any process, within a second
  /// unless the database cannot be reached; and by stop(). Stop callbacks run on the dispatcher's database thread or on
  /// the thread that calls stop(). The scheduler must outlive the dispatcher; the store need not. Throws store_error
  /// and what the scheduling calls throw.
  dispatcher(scheduler& on, store& from, task_handler handler, dispatcher_options options = {});
  /// Calls stop(). Handlers that may run meanwhile must use a reference to the dispatcher: see ~scheduler(). Inside the
  /// handler this calls std::terminate().
  ~dispatcher();
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// Requests the stop tokens of the runs in progress, hands back the tasks whose run has not begun, waits for the
  /// runs, and reports their results to the database. If the database does not answer, stop() retries for two seconds
  /// and finishes with the attempt then in progress, which can take about 15 s more if a server hangs. What could not
  /// be reported is left to the leases. Idempotent. Throws std::logic_error inside the handler. If stop() is called on
  /// the scheduler's driver, for example in an inline task, the leases of the runs that it waits for are not renewed.
  void stop();

  /// Takes time proportional to the number of the histograms' buckets. May be called from any thread.
  dispatcher_statistics stats() const;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rondo::durable
