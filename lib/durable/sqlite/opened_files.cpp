#include "durable/sqlite/opened_files.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <rondo/durable.hpp>

#include "durable/sqlite/advice.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

[[noreturn]] void fail(const std::string& name) {
  const int reason = errno;
  throw store_error("rondo: SQLite, " + name + ": " + std::generic_category().message(reason) +
                    advice_on(SQLITE_CANTOPEN, reason));
}

/// During its lifetime, nobody else gives up files of the folder.
class folder_lock {
 public:
  explicit folder_lock(const std::string& folder)
      : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (file_ < 0) fail(folder);
    while (::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) break;  // without it, two processes that do the same at the same moment could meet
  }
  ~folder_lock() { ::close(file_); }
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int file_;
};

}  // namespace

opened_files::opened_files(std::string database)
    : name_(std::move(database)), database_(identity_of(name_)), log_names_{name_ + "-wal", name_ + "-shm"} {}

void opened_files::note_log() {
  const std::lock_guard hold(mutex_);
  if (users_of_log_ == 0)
    for (std::size_t i = 0; i != log_.size(); ++i) log_[i] = identity_of(log_names_[i]);
  ++users_of_log_;
}

opened_files::identity opened_files::identity_of(const std::string& name) {
  struct stat found {};
  if (::stat(name.c_str(), &found) == 0) return std::pair(found.st_dev, found.st_ino);
  if (errno != ENOENT && errno != ENOTDIR) fail(name);
  return std::nullopt;
}

bool opened_files::are_in_place() const {
  const std::lock_guard hold(mutex_);
  return identity_of(name_) == database_ && (users_of_log_ == 0 || identity_of(log_names_[0]) == log_[0]);
}

bool opened_files::has_successor() const { return identity_of(name_).has_value(); }

void opened_files::give_up(const std::function<void()>& copy_log) {
  const folder_lock held(std::filesystem::path(name_).parent_path().string());
  copy_log();
  are_given_up_ = true;
  const std::lock_guard hold(mutex_);
  for (std::size_t i = 0; i != log_.size(); ++i) {
    if (!log_[i] || identity_of(log_names_[i]) != log_[i]) continue;
    if (::unlink(log_names_[i].c_str()) != 0 && errno != ENOENT) fail(log_names_[i]);
  }
}

}  // namespace rondo::durable::detail::sqlite
