// The threads that run the handler.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/run.hpp"

namespace rondo::durable::detail {

/// Runs wait here for a thread, in the order in which they were added. Ended runs go to the inbox.
///
/// Every run that waits here has begun in the database: it can no longer be cancelled, and no other dispatcher takes
/// it. So few should wait. But if none did, each thread would be idle for a transaction after each run. So room()
/// allows one run for each idle thread, and twice as many as ended during the last transaction, which the threads may
/// well take during the next one. If runs are long, that is at most two for each thread.
class handler_threads {
 public:
  /// At most this many runs wait. (With SQLite, four threads and a handler that does nothing, 16 or more runs ahead
  /// gave three times as many tasks a second as none. More than that only made the transactions fewer: 54 tasks in each
  /// with 64 ahead, 192 with 256.)
  static constexpr std::size_t most_ahead = 256;

  /// `body` executes a run and notes in it how it ended; it does not throw. `to` outlives this object.
  handler_threads(std::size_t threads, inbox& to, std::function<void(run&)> body);
  ~handler_threads();
  handler_threads(const handler_threads&) = delete;
  handler_threads& operator=(const handler_threads&) = delete;

  // From any thread.

  /// How many runs should be added.
  std::size_t room() const;
  /// The number of runs, waiting or in progress.
  std::size_t size() const;
  /// The tickets of the runs in progress. Throws std::bad_alloc.
  std::vector<ticket> in_progress() const;
  /// The tickets of all runs, waiting or in progress. Throws std::bad_alloc.
  std::vector<ticket> tickets() const;
  /// Adds the beginnings of all runs to a turn. Throws std::bad_alloc.
  void put_beginnings_into(turn& t) const;

  // From the database thread.

  /// Gives all of `begun` to the threads.
  void add(run_list& begun) noexcept;
  /// Reports that `n` runs have ended since the last call.
  void ended(std::size_t n) noexcept;
  /// Takes away the runs for which no thread is free and whose lease runs out before `lease_before`.
  run_list take_waiting(time_point lease_before) noexcept;
  /// Takes away all waiting runs.
  run_list take_waiting() noexcept;

  /// Requests the stop tokens of those runs, waiting or in progress, that are in the list.
  void request_stop(const std::vector<ticket>& of) noexcept;

  // From one thread at a time, which is not one of these threads.

  /// After this no run begins. Waiting runs stay for take_waiting().
  void close() noexcept;
  /// Requests the stop tokens of all runs.
  void request_stop() noexcept;
  /// After close(): waits for the runs in progress.
  void join();

 private:
  template <class Condition>
  void request_stop_if(Condition holds) noexcept;
  void work() noexcept;

  inbox& inbox_;
  const std::function<void(run&)> body_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  run_list waiting_, in_progress_;
  std::size_t ahead_ = 0;
  bool closed_ = false;
  const std::size_t count_;
  std::vector<std::thread> threads_;
};

}  // namespace rondo::durable::detail
