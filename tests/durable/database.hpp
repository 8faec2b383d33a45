// What the tests of stores run on: each test program brings one engine's databases. durable_tests has SQLite's
// (sqlite_database.cpp), durable_servers_tests PostgreSQL's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/store_access.hpp"

namespace durable_test {

using namespace std::chrono_literals;
using rondo::durable::detail::claim;
using rondo::durable::detail::claim_rules;
using rondo::durable::detail::ticket;
using rondo::durable::detail::turn;
using rondo::durable::detail::turn_result;

/// A connection of the user's own.
class their_connection {
 public:
  virtual ~their_connection() = default;
  virtual rondo::durable::transaction handle() = 0;
  virtual void execute(const std::string& sql) = 0;  // throws if it is refused
};

/// A database that was empty when the object was made, and is removed with it.
class database {
 public:
  virtual ~database() = default;
  virtual std::string url() const = 0;
  /// What store::open() would make, with a connection of its own.
  virtual std::shared_ptr<rondo::durable::detail::engine> open() = 0;
  virtual std::unique_ptr<their_connection> connect() = 0;
  /// Afterwards it is so much later, to the engine. (Where its clock is not to be set, all times in the tables go
  /// back by so much instead.)
  virtual void pass(rondo::duration time) = 0;
  /// By the engine's clock.
  virtual rondo::durable::wall_time now() = 0;
  /// The first column of the first row, as text. NULL, or no row: empty.
  virtual std::string ask(const std::string& sql) = 0;

  std::unique_ptr<rondo::durable::store> open_store() {
    return rondo::durable::detail::store_access::make(open());
  }
};

std::unique_ptr<database> new_database();

/// A dispatcher's session, with a call for each thing that it does in a turn.
class worker {
 public:
  static claim_rules default_rules() {
    return {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3};
  }

  explicit worker(database& on, const std::string& name = "worker",
                  const claim_rules& rules = default_rules())
      : engine_(on.open()), session_(engine_->connect(name, rules)) {}

  turn_result take(const turn& what) { return session_->take(what); }
  std::vector<claim> claim_up_to(std::size_t count) { return take({.claim_up_to = count}).claimed; }
  /// The only one that can be claimed.
  claim claim_one();
  bool begin(ticket t) { return take({.begun = {t}}).begun == std::vector{t}; }
  bool finish(ticket t) { return take({.finished = {t}}).finished == std::vector{t}; }
  bool renew(ticket t) { return take({.renewed = {t}}).renewed == std::vector{t}; }
  bool retry(ticket t, rondo::duration after) {
    return take({.failed = {{.of = t, .retry_after = after, .reason = "failed"}}}).failed == std::vector{t};
  }
  bool give_up(ticket t, const std::string& why) {
    return take({.failed = {{.of = t, .retry_after = {}, .reason = why}}}).failed == std::vector{t};
  }
  void unstart(ticket t) { take({.unstarted = {t}}); }
  void give_back(ticket t) { take({.returned = {t}}); }

  rondo::durable::detail::session& session() { return *session_; }

 private:
  std::shared_ptr<rondo::durable::detail::engine> engine_;
  std::unique_ptr<rondo::durable::detail::session> session_;
};

inline ticket ticket_of(const claim& c) { return {.id = c.what.id, .fence = c.what.fence}; }
inline std::vector<std::int64_t> ids_of(const std::vector<claim>& claims) {
  std::vector<std::int64_t> result;
  for (const claim& c : claims) result.push_back(c.what.id);
  return result;
}

/// What can have become of a task.
enum class state { waiting, held, running, retried, dead, cancelled_while_running, done };

/// A task due at once in this state, on a database without other tasks that are due; `at` has claimed it.
std::int64_t task_in(state s, rondo::durable::store& in, worker& at,
                     const rondo::durable::submission& what = {});

}  // namespace durable_test
