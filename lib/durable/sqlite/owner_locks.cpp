#include "durable/sqlite/owner_locks.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <rondo/durable.hpp>

#include "durable/sqlite/advice.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

constexpr bool exist =
#ifdef F_OFD_SETLK
    true;
#else
    false;
#endif

/// Whether the byte of that number has been locked, or unlocked.
bool set([[maybe_unused]] int file, [[maybe_unused]] std::int64_t number, [[maybe_unused]] short type) {
#ifdef F_OFD_SETLK
  struct flock all {};
  all.l_type = type;
  all.l_whence = SEEK_SET;
  all.l_start = number;
  all.l_len = 1;
  return fcntl(file, F_OFD_SETLK, &all) == 0;
#else
  return true;
#endif
}

/// Gives a new file to those who may use the database. (Its rights may have been changed since somebody made it under the
/// mask of his process, and SQLite gives the same ones to the log.)
void let_in_users_of(const std::string& database, int file) {
  struct stat their {};
  if (::stat(database.c_str(), &their) != 0) return;
  mode_t mode = their.st_mode & 0777;
  const bool is_theirs = ::fchown(file, their.st_uid, their.st_gid) == 0;  // as root
  if (!is_theirs && ::fchown(file, static_cast<uid_t>(-1), their.st_gid) != 0)
    mode = (mode & 0707) | (mode & 0007) << 3;  // another group, which gets the rights of all others
  ::fchmod(file, mode);
}

/// Returns the descriptor, or -1.
int open_or_create(const std::string& name, const std::string& database) {
  for (;;) {
    int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    if (file >= 0 || errno != ENOENT) return file;
    file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file >= 0) let_in_users_of(database, file);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

}  // namespace

owner_locks::owner_locks(const std::string& database) {
  // The same file, by whatever name a process opens the database.
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::weakly_canonical(database, failed);
  const std::string name = (failed ? database : path.string()) + "-owners";
  file_ = open_or_create(name, failed ? database : path.string());
  if (file_ < 0) {
    const int reason = errno;
    throw store_error("rondo: SQLite, " + name + ": " + std::generic_category().message(reason) +
                      advice_on(SQLITE_CANTOPEN, reason));
  }
}

owner_locks::~owner_locks() { ::close(file_); }

bool owner_locks::lock_own(std::int64_t number) noexcept { return set(file_, number, F_WRLCK); }

bool owner_locks::lock_dead(std::int64_t number) noexcept { return exist && set(file_, number, F_WRLCK); }

void owner_locks::unlock(std::int64_t number) noexcept { set(file_, number, F_UNLCK); }

}  // namespace rondo::durable::detail::sqlite
