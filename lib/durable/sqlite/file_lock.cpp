#include "durable/sqlite/file_lock.hpp"

#include <pthread.h>

#include <filesystem>
#include <map>
#include <new>
#include <system_error>
#include <utility>

#include <rondo/durable.hpp>

#include "platform.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

/// The locks of all files that are open in this process. The mutex is held during fork(), so the child finds it free and
/// the map consistent.
struct open_files {
  static inline constinit std::mutex mutex;

  static std::map<std::string, std::weak_ptr<file_lock>>& locks() {
    static auto& all =
        *new std::map<std::string, std::weak_ptr<file_lock>>;  // also for stores with static lifetime
    return all;
  }

  static void watch_forks() {
#if RONDO_HAS_FORK
    static const bool watching =
        pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); }) == 0;
    if (!watching) throw std::bad_alloc();
#endif
  }
};

}  // namespace

std::shared_ptr<file_lock> file_lock::of(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::weakly_canonical(file, failed);
  open_files::watch_forks();
  const std::lock_guard hold(open_files::mutex);
  std::erase_if(open_files::locks(), [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<file_lock>& known = open_files::locks()[failed ? file : path.string()];
  std::shared_ptr<file_lock> result = known.lock();
  if (result == nullptr) known = result = std::make_shared<file_lock>();
  if (result->process_ != getpid()) {
    throw store_error("rondo: SQLite, " + file +
                      ": the parent of this process had the file open when it called fork(), so it cannot be "
                      "opened here before exec()");
  }
  return result;
}

file_lock::holder file_lock::lock_until(std::chrono::steady_clock::time_point end) {
  std::unique_lock hold(mutex_);
  if (!is_held_) {
    is_held_ = true;
    return holder(this);
  }
  const auto mine = waiting_.emplace(waiting_.end());
  const bool has_lock = mine->woken.wait_until(hold, end, [&] { return mine->has_lock; });
  waiting_.erase(mine);
  return holder(has_lock ? this : nullptr);
}

void file_lock::check_noticed(const std::string& database) {
  const std::lock_guard hold(mutex_);
  static_cast<void>(in_use(database));
}

std::shared_ptr<opened_files> file_lock::files(const std::string& database) {
  auto fresh = std::make_shared<opened_files>(database);
  const std::lock_guard hold(mutex_);
  for (const auto& known : in_use(database)) {
    if (!known->is_same_database(*fresh)) continue;
    if (!known->are_given_up()) return known;
    throw store_error("rondo: SQLite, " + database +
                      ": the file was removed or replaced, and is back. It can be opened once each store and "
                      "dispatcher of this process has noticed that, or after a restart");
  }
  opened_.push_back(fresh);
  return fresh;
}

/// Precondition: the lock is held.
std::vector<std::shared_ptr<opened_files>> file_lock::in_use(const std::string& database) {
  std::vector<std::shared_ptr<opened_files>> all;
  std::erase_if(opened_, [&](const auto& each) {
    auto known = each.lock();
    if (known == nullptr) return true;
    all.push_back(std::move(known));
    return false;
  });
  for (const auto& each : all) {
    if (each->are_given_up() || each->are_in_place()) continue;
    throw store_error(
        "rondo: SQLite, " + database +
        ": the file has been removed or replaced. It can be opened once a store or dispatcher of "
        "this process that has the old one open has noticed that, or after a restart");
  }
  return all;
}

/// Passes the lock on, so that nobody can overtake the first that waits.
void file_lock::unlock() noexcept {
  const std::lock_guard hold(mutex_);
  is_held_ = !waiting_.empty();
  if (!is_held_) return;
  waiting_.front().has_lock = true;
  waiting_.front().woken.notify_one();
}

}  // namespace rondo::durable::detail::sqlite
