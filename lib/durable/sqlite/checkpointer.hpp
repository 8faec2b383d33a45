// The write-ahead log of a database: waits until it is on the disk, and keeps it short.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "durable/sqlite/connection.hpp"

namespace rondo::durable::detail::sqlite {

/// In its mode FULL, SQLite waits for the disk before it lets others write. Beside a thread that submits without a pause,
/// nobody else could write for nearly all of the time. So our connections commit in mode NORMAL, and whoever promises
/// that a commit outlives a power cut waits afterwards, without any lock. (A checkpoint syncs the log before it copies it.
/// So when the log has begun anew, what was in it before is in the file.)
///
/// The system tells only once that it could not write pages, then takes them for written. So after a sync has failed, the log
/// is written once more.
class log_file {
 public:
  /// `patience` is that of a connection that writes the log once more.
  log_file(std::string database, std::chrono::milliseconds patience)
      : database_(std::move(database)), patience_(patience) {}
  ~log_file();
  log_file(const log_file&) = delete;
  log_file& operator=(const log_file&) = delete;

  /// To be called with each new connection: the log may be another one. Precondition: the connection is in WAL mode.
  void open(const connection& database);
  /// Waits until what has been committed is on the disk. From any thread.
  void sync();
  /// Somebody else's sync may have failed.
  void note_failure();

 private:
  const std::string database_;
  const std::chrono::milliseconds patience_;
  std::atomic<std::uint64_t> asked_ = 0;  // calls of sync()
  std::mutex mutex_;
  std::uint64_t done_ = 0;  // of these
  int file_ = -1;
  std::string name_;
  int failed_ = 0;  // the system's error if a sync has failed, and the log was not written once more
};

/// Copies the log into the file, on its own thread. SQLite would do that in the commit that makes the log long, which then
/// waits for two syncs of up to four megabytes. (For a dispatcher that ran 1,000 tasks a second, that was 9 ms, four times a
/// second.) Here commits go on during the longer part. They wait only while the rest is copied, so that the next one can
/// begin the log anew.
class checkpointer {
 public:
  checkpointer(std::string file, std::shared_ptr<log_file> log)
      : file_(std::move(file)), log_(std::move(log)) {}
  ~checkpointer();
  checkpointer(const checkpointer&) = delete;
  checkpointer& operator=(const checkpointer&) = delete;

  /// From now on this object takes care of the log as the connection's commits make it longer, and SQLite does not. Must
  /// outlive the connection.
  void watch(connection& database) noexcept;

 private:
  void wake() noexcept;
  static int committed(void* self, sqlite3*, const char*, int pages) noexcept;
  void run() noexcept;
  void shorten_log(int pages);
  void copy_log(connection& database);

  const std::string file_;
  const std::shared_ptr<log_file> log_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int pages_ = 0;   // of the log, at its last commit
  int copied_ = 0;  // of these
  bool is_over_ = false;
  std::thread thread_;  // once it is needed
};

}  // namespace rondo::durable::detail::sqlite
