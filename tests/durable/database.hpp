// The databases for the tests that every engine passes. Each test program provides those of one engine: durable_tests
// SQLite's, durable_servers_tests PostgreSQL's, durable_simulated_tests the simulated one's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/row.hpp"
#include "durable/store_access.hpp"

namespace durable_test {

using namespace std::chrono_literals;
using rondo::durable::detail::claim;
using rondo::durable::detail::claim_rules;
using rondo::durable::detail::ticket;
using rondo::durable::detail::turn;
using rondo::durable::detail::turn_result;

/// A database that is empty when the object is created, and is removed with it.
class database {
 public:
  virtual ~database() = default;
  /// Opens the engine as store::open() would, with its own connection.
  virtual std::shared_ptr<rondo::durable::detail::engine> open() = 0;
  /// Advances the engine's time. (If its clock cannot be set, moves all times in the tables back instead.)
  virtual void pass(rondo::duration time) = 0;
  /// The time of the engine's clock.
  virtual rondo::durable::wall_time now() = 0;
  /// The tasks, in the order of their ids, and the owners of sessions of whose end nobody has taken notice.
  virtual std::vector<row> rows() = 0;
  virtual std::vector<std::string> owners() = 0;
  /// Says what is wrong in the tables, whatever the tests have done. Empty if nothing is.
  virtual std::string wrong() { return ""; }

  std::unique_ptr<rondo::durable::store> open_store() {
    return rondo::durable::detail::store_access::make(open());
  }
};

std::unique_ptr<database> new_database();

/// A dispatcher's session, with a call for each part of a turn.
class worker {
 public:
  static claim_rules default_rules() {
    return {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3};
  }

  explicit worker(database& on, const std::string& name = "worker",
                  const claim_rules& rules = default_rules())
      : engine_(on.open()), session_(engine_->connect(name, rules)) {}

  turn_result take(const turn& what) { return session_->take(what); }
  /// Claims again while there is room and the last claim says that the next one may find more.
  std::vector<claim> claim_all(turn what);
  std::vector<claim> claim_up_to(std::size_t count) { return claim_all({.claim_up_to = count}); }
  /// Claims the only task that can be claimed.
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

/// The states that a task can be in.
enum class state { waiting, held, running, retried, dead, cancelled_while_running, done };

/// Submits a task due at once and brings it into this state, with `at` as the session that claims it. No other task in
/// the database may be due.
std::int64_t task_in(state s, rondo::durable::store& in, worker& at,
                     const rondo::durable::submission& what = {});

}  // namespace durable_test
