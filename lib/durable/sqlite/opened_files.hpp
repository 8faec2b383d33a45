// Whether the names of a database's files still lead to what this process has opened.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace rondo::durable::detail::sqlite {

/// The files of a database: itself, its log, and the index of the log. SQLite finds the latter two by their names alone. So
/// when somebody has put another database in the place of this one, the next connection to that would take this one's log
/// for its own, which damages it. Shared by the connections of this process. All members may be called from any thread.
class opened_files {
 public:
  /// `database` must be the name under which SQLite has opened the file.
  explicit opened_files(std::string database);
  /// For each connection that has opened the log, which must then be closed by close_log().
  void note_log();
  /// Closes the connection by calling `close`. (With the last one SQLite removes the log, and the next one makes another.)
  template <class Function>
  void close_log(Function close) noexcept {
    const std::lock_guard hold(mutex_);
    close();
    --users_of_log_;
  }

  bool is_same_database(const opened_files& other) const noexcept { return database_ == other.database_; }
  /// If not, nothing may be written through these files any more.
  bool are_in_place() const;
  /// Whether there is a file by the name of the database.
  bool has_successor() const;

  /// Calls `copy_log`, which should copy the log into the database. Then removes what is left of the log and its index
  /// under their names, so that nobody takes them for those of another database. What others have put there stays. Throws
  /// store_error.
  void give_up(const std::function<void()>& copy_log);
  bool are_given_up() const noexcept { return are_given_up_; }

 private:
  using identity = std::optional<std::pair<dev_t, ino_t>>;  // none if there is no file

  static identity identity_of(const std::string& name);

  const std::string name_;
  const identity database_;
  const std::array<std::string, 2> log_names_;
  mutable std::mutex mutex_;
  std::size_t users_of_log_ = 0;
  std::array<identity, 2> log_;  // if it has users
  std::atomic<bool> are_given_up_ = false;
};

}  // namespace rondo::durable::detail::sqlite
