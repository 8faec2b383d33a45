// The write-ahead log of a database, for waiting until it is on the disk.
#pragma once

#include <string>

#include "durable/sqlite/connection.hpp"

namespace rondo::durable::detail::sqlite {

/// In its mode FULL, SQLite waits for the disk before it lets others write. Beside a thread that submits without a pause,
/// nobody else could write for nearly all of the time. So our connections commit in mode NORMAL, and whoever promises
/// that a commit outlives a power cut waits afterwards, without any lock. (A checkpoint syncs the log before it copies it.
/// So when the log has begun anew, what was in it before is in the file.)
class log_file {
 public:
  /// Precondition: the connection is in WAL mode, and stays open as long as this object is used.
  explicit log_file(const connection& database);
  ~log_file();
  log_file(const log_file&) = delete;
  log_file& operator=(const log_file&) = delete;

  /// Waits until what has been committed is on the disk. From any thread.
  void sync() const;

 private:
  const std::string name_;
  int file_;
};

}  // namespace rondo::durable::detail::sqlite
