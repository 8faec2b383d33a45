// Runs that have begun in the database, and the threads that run the handler.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/run.hpp"

namespace rondo::durable::detail {

/// They wait here for a thread, in the order in which they were added, or are in progress. Ended runs go to the inbox.
/// All members may be called from any thread.
///
/// A run that waits can no longer be cancelled, and no other dispatcher takes it. So few should wait. But if none did,
/// each thread would be idle for a transaction after each run. So room() allows one run for each idle thread, and twice
/// as many as ended during the last transaction, which the threads may well take during the next one. If runs are long,
/// that is at most two for each thread.
class begun_runs {
 public:
  /// At most this many runs wait. (With SQLite, four threads and a handler that does nothing, 16 or more runs ahead
  /// gave three times as many tasks a second as none. More than that only made the transactions fewer: 54 tasks in each
  /// with 64 ahead, 192 with 256.)
  static constexpr std::size_t most_ahead = 256;

  using place = run_list::iterator;

  /// `threads` run the handler. `to` outlives this object.
  begun_runs(std::size_t threads, inbox& to) noexcept : inbox_(to), threads_(threads) {}

  /// How many runs should be added.
  std::size_t room() const;
  /// The number of runs, waiting or in progress.
  std::size_t size() const;
  /// The tickets of the runs in progress. Throws std::bad_alloc.
  std::vector<ticket> in_progress() const;
  /// The tickets of all runs, waiting or in progress. Throws std::bad_alloc.
  std::vector<ticket> tickets() const;
  /// These, and those of the runs that have ended and are still in the inbox. Throws std::bad_alloc.
  std::vector<ticket> untold() const;
  /// Adds the beginnings of all runs to a turn. Throws std::bad_alloc.
  void put_beginnings_into(turn& t) const;

  // For the database thread.

  /// All of `begun` wait for a thread.
  void add(run_list& begun) noexcept;
  /// Reports that `n` runs have ended since the last call.
  void ended(std::size_t n) noexcept;
  /// Takes away the runs for which no thread is free and whose lease runs out before `lease_before`.
  run_list take_waiting(time_point lease_before) noexcept;
  /// Takes away all waiting runs.
  run_list take_waiting() noexcept;

  // For the threads that run the handler.

  /// The first run that waits is now in progress. None if no run waits, or after close().
  std::optional<place> begin_next() noexcept;
  /// Waits until a run waits for a thread, which another thread may take first. Returns false after close().
  bool wait() noexcept;
  /// That run, which was in progress, is over.
  void end(place ended) noexcept;

  // To end or interrupt runs.

  /// Requests the stop tokens of those runs, waiting or in progress, that are in the list.
  void request_stop(const std::vector<ticket>& of) noexcept;
  /// Requests the stop tokens of all runs.
  void request_stop() noexcept;
  /// After this no run begins. Waiting runs stay for take_waiting().
  void close() noexcept;

 private:
  template <class Condition>
  void request_stop_if(Condition holds) noexcept;

  inbox& inbox_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  run_list waiting_, in_progress_;
  std::size_t ahead_ = 0;
  bool closed_ = false;
  const std::size_t threads_;
};

/// Each takes one run after the other, until the runs are closed.
class handler_threads {
 public:
  /// `body` executes a run and notes in it how it ended; it does not throw. `runs` outlives this object.
  handler_threads(std::size_t threads, begun_runs& runs, std::function<void(run&)> body);
  ~handler_threads();
  handler_threads(const handler_threads&) = delete;
  handler_threads& operator=(const handler_threads&) = delete;

  /// After begun_runs::close(): waits for the runs in progress. Not from one of these threads.
  void join();

 private:
  void work() noexcept;

  begun_runs& runs_;
  const std::function<void(run&)> body_;
  std::vector<std::thread> threads_;
};

}  // namespace rondo::durable::detail
