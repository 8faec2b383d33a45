// A store in PostgreSQL.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "durable/engine.hpp"
#include "durable/postgresql/connection.hpp"

namespace rondo::durable::detail::postgresql {

/// The store's connections. Concurrent calls use several, because each call waits for the server's disk.
class connection_pool {
 public:
  explicit connection_pool(std::string url) : url_(std::move(url)) {}

  /// Calls `f` with a connection that nobody else uses, and again if the server refused what would succeed now. Waits
  /// while all are in use.
  template <class Function>
  auto with_one(Function f) {
    const borrowed one(*this);
    for (int left = most_repetitions;; --left) {
      try {
        return f(*one.what);
      } catch (const store_error& error) {
        if (left == 0 || !may_succeed_now(error)) throw;
      }
    }
  }

 private:
  static constexpr std::size_t most = 8;
  static constexpr int most_repetitions = 4;

  struct borrowed {
    explicit borrowed(connection_pool& from) : pool(from), what(from.take()) {}
    ~borrowed() { pool.give_back(std::move(what)); }
    borrowed(const borrowed&) = delete;
    borrowed& operator=(const borrowed&) = delete;

    connection_pool& pool;
    std::unique_ptr<connection> what;
  };

  static bool may_succeed_now(const store_error& error);
  std::unique_ptr<connection> take();
  void give_back(std::unique_ptr<connection> one) noexcept;

  std::string url_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<connection>> idle_;
  std::size_t in_use_ = 0;
};

class server_engine final : public engine {
 public:
  /// Creates or migrates the schema.
  explicit server_engine(std::string url);

  std::int64_t submit(const due_time& due, const submission& what, const transaction* in) override;
  std::vector<std::int64_t> submit_all(std::span<const planned> all, const transaction* in) override;
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
  result run(const statement& what, const parameters& with, const transaction* in);
  template <class Function>
  auto together(const transaction* in, Function f);
  void check(const transaction& in) const;
  /// Throws key_taken for the first of these submissions whose key is taken.
  void refuse_if_taken(std::span<const planned> all, const transaction* in);
  std::string in_home(std::string statement) const;

  std::string url_;
  connection_pool connections_;
  std::string database_;  // its name
  // The schema of the tables, quoted where it must be. Only what runs in a caller's transaction names it: own connections
  // search the tables. So while a store is open and the tables are in another schema than at first, calls in a transaction
  // fail with "does not exist", as somebody may have put other tables there.
  std::string home_;
};

/// Returns the task in a row of an answer whose columns are id, fence, attempt, queue, key, payload, due, point.
task task_of(const result& answer, int row);

}  // namespace rondo::durable::detail::postgresql
