// Which owners of tasks live.
#pragma once

#include <cstdint>
#include <string>

namespace rondo::durable::detail::sqlite {

/// Locks on numbers, by which processes see each other's sessions end: the system releases those of a process that dies.
/// They are locks on bytes of a file beside the database, and belong to this object, so two of a process exclude each
/// other. Where the system has no such locks (they are Linux's), each object gets its own, and nobody gets another's.
class owner_locks {
 public:
  /// Opens or creates the file. Throws store_error.
  explicit owner_locks(const std::string& database);
  ~owner_locks();
  owner_locks(const owner_locks&) = delete;
  owner_locks& operator=(const owner_locks&) = delete;

  /// For the owner itself. Returns false if it has been locked by another.
  bool lock_own(std::int64_t number) noexcept;
  /// Whether the owner of the number has died. If so, its number is locked.
  bool lock_dead(std::int64_t number) noexcept;
  void unlock(std::int64_t number) noexcept;

 private:
  int file_;
};

}  // namespace rondo::durable::detail::sqlite
