// What the connections of this process that have the same file open share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include "durable/sqlite/opened_files.hpp"

namespace rondo::durable::detail::sqlite {

/// The connections of a process write to a file in the order in which they asked. A connection that waits for SQLite's
/// own lock can only try again and again, so one that takes the lock in a loop keeps it from the others. That lock still
/// excludes connections that do not ask here: those of other processes and of the caller.
class file_lock {
 public:
  struct releaser {
    void operator()(file_lock* held) const noexcept { held->unlock(); }
  };
  using holder = std::unique_ptr<file_lock, releaser>;

  /// Returns the only lock for this file, whatever name it has. Throws store_error in a child made by fork() if its
  /// parent had the file open at that time. SQLite keeps the locks of a process in that process's memory, so the child's
  /// copy of them would be wrong: the child would not keep the parent from removing the log while the child writes to
  /// it, and would wait without end for a lock that the parent held.
  static std::shared_ptr<file_lock> of(const std::string& file);

  /// Waits for its turn. Returns null if that is not before `end`. Throws std::bad_alloc.
  holder lock_until(std::chrono::steady_clock::time_point end);
  /// Throws store_error if files that this process has open have been removed or replaced, and nobody has given them up:
  /// a new connection would take their log for that of another database.
  void check_noticed(const std::string& database);
  /// Returns the files that this process has open as the database of that name. Throws as check_noticed(), and if they are
  /// given up and yet there again: SQLite would let a new connection share the index of the log with those that have not
  /// noticed.
  std::shared_ptr<opened_files> files(const std::string& database);
  /// How many wait. For tests.
  std::size_t waiting() {
    const std::lock_guard hold(mutex_);
    return waiting_.size();
  }

 private:
  struct waiter {
    std::condition_variable woken;
    bool has_lock = false;
  };

  void unlock() noexcept;
  std::vector<std::shared_ptr<opened_files>> in_use(const std::string& database);

  const pid_t process_ = getpid();
  std::mutex mutex_;
  bool is_held_ = false;
  std::vector<std::weak_ptr<opened_files>> opened_;
  std::list<waiter> waiting_;  // in the order of arrival; empty unless the lock is held
};

}  // namespace rondo::durable::detail::sqlite
