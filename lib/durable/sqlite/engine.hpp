// Tasks in a SQLite database. Times are in microseconds of the host's system_clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "durable/engine.hpp"
#include "durable/sqlite/checkpointer.hpp"
#include "durable/sqlite/connection.hpp"

namespace rondo::durable::detail::sqlite {

/// Element n turns the schema of version n into that of version n + 1. An empty database has version 0.
using migrations = std::vector<std::vector<std::string>>;

const migrations& all_migrations();

/// Creates or migrates the schema, in one transaction. Throws store_error if it is newer than all migrations, or
/// damaged.
void bring_up_to_date(connection& database, const migrations& steps);

/// Says that tasks are due soon, to the sessions of the store that was told of them. SQLite tells a connection nothing, so
/// those of other stores find them when they look next.
class news {
 public:
  /// What a session knows.
  struct reader {
    std::uint64_t seen = 0;
    bool is_interrupted = false;
  };

  void publish() noexcept {
    const std::lock_guard hold(mutex_);
    ++published_;
    woken_.notify_all();
  }

  /// Waits until there are news that the reader has not seen, or it is interrupted. Returns whether there are news.
  bool wait(reader& by) {
    std::unique_lock hold(mutex_);
    woken_.wait(hold, [&] { return by.is_interrupted || by.seen != published_; });
    by.is_interrupted = false;
    const bool any = by.seen != published_;
    by.seen = published_;
    return any;
  }

  void interrupt(reader& by) noexcept {
    const std::lock_guard hold(mutex_);
    by.is_interrupted = true;
    woken_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  std::uint64_t published_ = 0;
};

/// Only tests use other values than these defaults.
struct settings {
  std::function<wall_time()> clock = std::chrono::system_clock::now;
  std::function<void(sqlite3*)> connected = {};  // called with each new connection
  migrations steps = all_migrations();
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  ///@{
  /// Of the engine, for it and its sessions.
  std::shared_ptr<checkpointer> checkpoints = {};
  std::shared_ptr<news> due_soon = std::make_shared<news>();
  std::function<void()> leave_old_file = [] {};  // called before a session opens the file
  ///@}
};

class file_engine final : public engine {
 public:
  file_engine(std::string file, settings with);

  std::int64_t submit(const due_time& due, const submission& what, const transaction* in) override;
  std::vector<std::int64_t> submit_all(std::span<const planned> list, const transaction* in) override;
  std::int64_t repeat(const repeated& what, const transaction* in) override;
  bool cancel(std::int64_t id, const transaction* in) override;
  bool cancel(const std::string& queue, const std::string& key, const transaction* in) override;
  bool reschedule(std::int64_t id, const due_time& due, const transaction* in) override;
  bool reschedule(const std::string& queue, const std::string& key, const due_time& due,
                  const transaction* in) override;
  std::optional<task> find(std::int64_t id, const transaction* in) override;
  std::optional<task> find(const std::string& queue, const std::string& key, const transaction* in) override;
  void pause(const std::string& queue) override;
  void resume(const std::string& queue) override;
  bool paused(const std::string& queue) override;
  std::vector<listed> list(const std::string& queue, std::optional<task_state> only, std::int64_t after_id,
                           std::size_t limit) override;
  bool retry(std::int64_t id) override;
  std::unique_ptr<session> connect(const std::string& owner, const claim_rules& rules) override;

 private:
  template <class Function>
  auto on(const transaction* in, Function f);
  void connect(when_absent what);
  void leave_old_file();
  connection theirs(const transaction& in) const;
  std::int64_t microseconds_until(const due_time& due) const;
  /// Wakes the sessions if the task is due soon. What is in the user's transaction cannot be seen yet.
  void tell(std::int64_t due, const transaction* in) const;

  std::string file_;
  settings with_;
  const std::shared_ptr<log_file> log_;
  std::mutex mutex_;
  std::optional<connection> own_;  // none if the next call must reconnect
  bool syncs_ = true;
};

/// Returns a new connection, with the schema up to date.
connection open_connection(const std::string& file, const settings& with,
                           when_absent what = when_absent::refuse);

std::shared_ptr<engine> open(const std::string& file, settings with);

/// The payload, in a statement about the table rondo_task: a macro, because statements are literals.
#define RONDO_PAYLOAD                       \
  "iif(payload_apart = 0, inline_payload, " \
  "(SELECT payload FROM rondo_payload WHERE rondo_payload.id = rondo_task.id))"

bool is_paused(connection& database, const std::string& queue);

/// Returns the task in a row with the columns id, queue, key, due, attempt, fence, payload, point.
task task_of(const rows& row);

}  // namespace rondo::durable::detail::sqlite
