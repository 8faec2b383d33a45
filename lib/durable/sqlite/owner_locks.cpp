#include "durable/sqlite/owner_locks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <rondo/durable.hpp>

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

}  // namespace

owner_locks::owner_locks(const std::string& database) {
  // The same file, by whatever name a process opens the database.
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::weakly_canonical(database, failed);
  const std::string name = (failed ? database : path.string()) + "-owners";
  constexpr mode_t everybody = 0666;  // as far as the process's mask allows, as for the database itself
  file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, everybody);
  if (file_ < 0) {
    throw store_error("rondo: SQLite, " + name + ": " + std::generic_category().message(errno) +
                      " (this process must be able to write to the file and to its folder)");
  }
}

owner_locks::~owner_locks() { ::close(file_); }

bool owner_locks::lock_own(std::int64_t number) noexcept { return set(file_, number, F_WRLCK); }

bool owner_locks::lock_dead(std::int64_t number) noexcept { return exist && set(file_, number, F_WRLCK); }

void owner_locks::unlock(std::int64_t number) noexcept { set(file_, number, F_UNLCK); }

}  // namespace rondo::durable::detail::sqlite
