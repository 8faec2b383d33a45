#include "durable/sqlite/log_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace rondo::durable::detail::sqlite {

namespace {

[[noreturn]] void fail(const std::string& name, bool perhaps_done) {
  throw error("rondo: SQLite, " + name + ": " + std::system_category().message(errno), SQLITE_IOERR,
              perhaps_done);
}

/// Without the times of the file, where the system can leave them out.
int put_on_disk(int file) {
#if defined(_POSIX_SYNCHRONIZED_IO) && _POSIX_SYNCHRONIZED_IO > 0
  return ::fdatasync(file);
#else
  return ::fsync(file);
#endif
}

}  // namespace

// SQLite has no locks on this file, which a process would lose with close().
log_file::log_file(const connection& database)
    : name_(sqlite3_filename_wal(sqlite3_db_filename(database.handle(), "main"))),
      file_(::open(name_.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (file_ < 0) fail(name_, false);
}

log_file::~log_file() { ::close(file_); }

void log_file::sync() const {
  while (put_on_disk(file_) != 0)
    if (errno != EINTR) fail(name_, true);
}

}  // namespace rondo::durable::detail::sqlite
