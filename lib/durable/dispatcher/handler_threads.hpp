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

/// Runs wait here for a thread, in the order in which they were added. What has ended goes to the inbox.
///
/// Every run that waits here has begun in the database: it can no longer be cancelled, and no other dispatcher takes it.
/// So it should be few that wait; but if none did, each thread would be idle for a transaction after each run. Hence
/// room(): one for each idle thread, and twice as many as ended during the last transaction, which the threads may well
/// take during the next. Where runs are long that is two for each thread at most.
class handler_threads {
 public:
  /// Never more than this many wait. (With SQLite, four threads and a handler that does nothing, three times as many tasks a
  /// second were run with 16 or more ahead as with none, and beyond that only the transactions became fewer: 54 tasks in
  /// one with 64, 192 with 256.)
  static constexpr std::size_t most_ahead = 256;

  /// `body` makes a run, and says in it how it ended; it does not throw. `to` outlives this object.
  handler_threads(std::size_t threads, inbox& to, std::function<void(run&)> body);
  ~handler_threads();
  handler_threads(const handler_threads&) = delete;
  handler_threads& operator=(const handler_threads&) = delete;

  // From any thread.

  /// How many runs should be added.
  std::size_t room() const;
  /// What wait for a thread and what have one.
  std::size_t size() const;
  /// Those that have a thread. Throws std::bad_alloc.
  std::vector<ticket> in_progress() const;
  /// These, and those that wait. Throws std::bad_alloc.
  std::vector<ticket> tickets() const;

  // From the database thread.

  /// Gives the threads all of `begun`.
  void add(run_list& begun) noexcept;
  /// So many have ended since the last call.
  void ended(std::size_t n) noexcept;
  /// Takes those away that no thread has taken, and whose lease runs out before `t`.
  run_list take_waiting(time_point lease_before) noexcept;
  /// All that no thread has taken.
  run_list take_waiting() noexcept;

  // From one thread at a time, not one of these.

  /// No run begins any more; those that wait stay for take_waiting().
  void close() noexcept;
  /// After close(): waits for the runs in progress.
  void join();

 private:
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
