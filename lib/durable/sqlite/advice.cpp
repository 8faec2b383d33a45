#include "durable/sqlite/advice.hpp"

#include <sqlite3.h>

#include <cerrno>

namespace rondo::durable::detail::sqlite {

namespace {

constexpr const char* on_full_disk = " (nothing was changed; free some disk space and try again)";

/// Null if the reason says nothing.
const char* advice_on_reason(int reason) noexcept {
  switch (reason) {
    case EMFILE:
      return " (this process has too many files open: raise its limit, see ulimit -n)";
    case ENFILE:
      return " (the processes of this host have too many files open)";
    case EROFS:
      return " (the file system is read-only)";
    case ENOSPC:
    case EDQUOT:
      return on_full_disk;
    case EISDIR:
      return " (this is a folder)";
    case ENOENT:
    case ENOTDIR:
      return " (there is no such folder)";
    default:
      return nullptr;
  }
}

}  // namespace

const char* advice_on(int code, int reason) noexcept {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return " (another connection has held the lock for too long; your own transactions should start with "
             "BEGIN "
             "IMMEDIATE)";
    case SQLITE_FULL:
      return on_full_disk;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      if (const char* better = advice_on_reason(reason)) return better;
      return " (this process must be able to write to the file and to its folder)";
    case SQLITE_IOERR:
      if (const char* better = advice_on_reason(reason)) return better;
      return "";
    case SQLITE_CORRUPT:
      return " (run \"PRAGMA integrity_check\", or restore a backup)";
    default:
      return "";
  }
}

}  // namespace rondo::durable::detail::sqlite
