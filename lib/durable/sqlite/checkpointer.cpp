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

#include "durable/sqlite/advice.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

/// What was committed may be undone.
[[noreturn]] void fail(const std::string& name, int reason) {
  throw error("rondo: SQLite, " + name + ": " + std::system_category().message(reason), SQLITE_IOERR, true);
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

// SQLite has no locks on the log, which a process would lose with close().
int open_log(const std::string& name) {
  const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0) return file;
  const int reason = errno;
  throw error("rondo: SQLite, " + name + ": " + std::system_category().message(reason) +
                  advice_on(SQLITE_CANTOPEN, reason),
              SQLITE_CANTOPEN);
}

std::string log_of(const connection& database) {
  return sqlite3_filename_wal(sqlite3_db_filename(database.handle(), "main"));
}

/// Writes what the log contains once more, and puts it on the disk, while nobody else writes. Throws store_error.
void write_again(const std::string& database, std::chrono::milliseconds patience) {
  connection without_writers(database, patience);
  const unit_of_work nothing(without_writers);
  const std::string name = log_of(without_writers);
  std::vector<char> part(std::size_t{1} << 16);
  const struct opened {
    int file;
    ~opened() { ::close(file); }
  } log{open_log(name)};
  off_t at = 0;
  while (const ssize_t size = ::pread(log.file, part.data(), part.size(), at)) {
    if (size < 0 || ::pwrite(log.file, part.data(), static_cast<std::size_t>(size), at) != size)
      fail(name, errno);
    at += size;
  }
  if (const int failed = put_on_disk(log.file); failed != 0) fail(name, failed);
}

}  // namespace

log_file::~log_file() {
  if (file_ >= 0) ::close(file_);
}

void log_file::open(const connection& database) {
  std::string name = log_of(database);
  const int fresh = open_log(name);
  const std::lock_guard hold(mutex_);
  if (file_ >= 0) ::close(file_);
  file_ = fresh;
  name_ = std::move(name);
}

void log_file::sync() {
  const std::uint64_t mine = ++asked_;
  // One at a time: of several, the system would tell only one that they have failed.
  const std::lock_guard hold(mutex_);
  if (done_ >= mine) return;
  const std::uint64_t asked = asked_;
  if (failed_ == 0 && file_ >= 0) failed_ = put_on_disk(file_);
  if (failed_ != 0) {
    try {
      write_again(database_, patience_);
    } catch (const std::exception&) {  // the disk fails again, or somebody has locked the log for too long
      fail(name_, failed_);
    }
    failed_ = 0;
  }
  done_ = asked;
}

void log_file::note_failure() {
  const std::lock_guard hold(mutex_);
  failed_ = EIO;
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
  log_->sync();  // SQLite does that, too, but does not know whether it has failed for others
  // Not kept open, as the file may be replaced.
  connection own(file_, longest_wait_for_turn);
  copy_log(own);
  if (pages < long_log) return;
  connection without_writers(file_, longest_wait_for_turn);
  const unit_of_work nothing(without_writers);
  copy_log(own);
}

/// Copies what no reader needs in the log, once that is on the disk. Neither waits for other connections nor lets them
/// wait.
void checkpointer::copy_log(connection& database) {
  const int code =
      sqlite3_wal_checkpoint_v2(database.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if ((code & 0xFF) == SQLITE_IOERR) log_->note_failure();
}

}  // namespace rondo::durable::detail::sqlite
