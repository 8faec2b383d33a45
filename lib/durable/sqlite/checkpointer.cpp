#include "durable/sqlite/checkpointer.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace rondo::durable::detail::sqlite {

namespace {

[[noreturn]] void fail(const std::string& name, int reason, bool perhaps_done) {
  throw error("rondo: SQLite, " + name + ": " + std::system_category().message(reason), SQLITE_IOERR,
              perhaps_done);
}

/// Returns 0, or the system's error. Without the times of the file, where the system can leave them out.
int put_on_disk(int file) {
  for (;;) {
#if defined(_POSIX_SYNCHRONIZED_IO) && _POSIX_SYNCHRONIZED_IO > 0
    const int result = ::fdatasync(file);
#else
    const int result = ::fsync(file);
#endif
    if (result == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

}  // namespace

// SQLite has no locks on this file, which a process would lose with close().
log_file::log_file(const connection& database, std::chrono::milliseconds patience, int failed)
    : database_(sqlite3_db_filename(database.handle(), "main")),
      name_(sqlite3_filename_wal(sqlite3_db_filename(database.handle(), "main"))),
      patience_(patience),
      file_(::open(name_.c_str(), O_RDWR | O_CLOEXEC)),
      failed_(failed) {
  if (file_ < 0) fail(name_, errno, false);
}

log_file::~log_file() { ::close(file_); }

void log_file::sync() {
  const std::uint64_t mine = ++asked_;
  const std::lock_guard hold(
      mutex_);  // of several at once, the system would tell only one that they have failed
  if (done_ >= mine) return;
  const std::uint64_t asked = asked_;
  if (failed_ == 0) failed_ = put_on_disk(file_);
  if (failed_ != 0) {
    try {
      write_again();
    } catch (const std::exception&) {  // the log is locked, or cannot be read or written
      fail(name_, failed_, true);
    }
    failed_ = put_on_disk(file_);
    if (failed_ != 0) fail(name_, failed_, true);
  }
  done_ = asked;
}

/// Writes what the log contains, so that the next sync cannot leave it out.
void log_file::write_again() const {
  connection without_writers(database_, patience_);
  const unit_of_work nothing(without_writers);
  std::vector<char> part(std::size_t{1} << 16);
  for (off_t at = 0;;) {
    const ssize_t size = ::pread(file_, part.data(), part.size(), at);
    if (size == 0) return;
    if (size < 0 || ::pwrite(file_, part.data(), static_cast<std::size_t>(size), at) != size)
      fail(name_, errno, true);
    at += size;
  }
}

namespace {

constexpr int at_once = 1000;  // pages that are copied together; SQLite's default
/// The log begins anew after this many pages. That takes a moment in which nobody can commit, so it is not done each time.
constexpr int long_log = 4000;
/// How long a checkpoint waits for its turn. It is not urgent: the next commit asks again.
constexpr std::chrono::milliseconds longest_wait_for_turn{1000};

void block_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// Copies what no reader needs in the log. Neither waits for other connections nor lets them wait.
void copy_log(connection& database) {
  sqlite3_wal_checkpoint_v2(database.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace

checkpointer::~checkpointer() {
  {
    const std::lock_guard hold(mutex_);
    is_over_ = true;
    woken_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void checkpointer::watch(connection& database) noexcept {
  sqlite3_wal_hook(database.handle(), committed, this);
}

int checkpointer::committed(void* self, sqlite3*, const char*, int pages) noexcept {
  auto& mine = *static_cast<checkpointer*>(self);
  const std::lock_guard hold(mine.mutex_);
  if (pages < mine.copied_) mine.copied_ = 0;  // the log has begun anew
  mine.pages_ = pages;
  if (pages - mine.copied_ >= at_once) mine.wake();
  return SQLITE_OK;
}

/// Precondition: the lock is held. (A store that writes little has no thread.)
void checkpointer::wake() noexcept {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {  // the system cannot create a thread: later commits ask again
    return;
  }
  woken_.notify_one();
}

void checkpointer::run() noexcept {
  block_signals();
  std::unique_lock hold(mutex_);
  for (;;) {
    woken_.wait(hold, [this] { return pages_ - copied_ >= at_once || is_over_; });
    if (is_over_) return;
    const int pages = copied_ = pages_;
    hold.unlock();
    try {
      shorten_log(pages);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // A lock, a full disk, no memory: later commits ask again.
    }
    hold.lock();
  }
}

void checkpointer::shorten_log(int pages) {
  // Not kept open, as the file may be replaced.
  connection own(file_, longest_wait_for_turn);
  copy_log(own);
  if (pages < long_log) return;
  connection without_writers(file_, longest_wait_for_turn);
  const unit_of_work nothing(without_writers);
  copy_log(own);
}

}  // namespace rondo::durable::detail::sqlite
