// The simulated database: what becomes of a transaction that is left at one of its stages, of two of which one is inside
// the other, and of what a crash may undo.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/simulated_database.hpp"
#include "durable/store_access.hpp"

namespace durable_simulated_stages {

using namespace durable_test;
using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::ticket;
using rondo::durable::store_error;
using ids = std::vector<std::int64_t>;

constexpr stage each_stage[] = {stage::begins, stage::statement, stage::commits, stage::committed};

struct broken {};

struct in_use {
  rondo::durable::wall_time now{std::chrono::hours(500'000)};
  simulated_database db;
  std::shared_ptr<detail::engine> engine = db.open();
  std::unique_ptr<rondo::durable::store> tasks = detail::store_access::make(engine);
  std::unique_ptr<detail::session> a = connect("a"), b = connect("b");

  explicit in_use(locking how) : db([this] { return now; }, how) {}

  std::unique_ptr<detail::session> connect(const std::string& owner) const {
    return engine->connect(owner, {.queues = {"default"}, .window = 5s, .lease = 30s, .max_attempts = 3});
  }
  /// Does something the next time that a transaction of the owner reaches a stage.
  void at(const std::string& owner, stage where, std::function<void()> then) {
    db.observe([this, owner, where, then, done = false](const std::string& who, stage s) mutable {
      if (who != owner || s != where || std::exchange(done, true)) return;
      then();
    });
  }
  static ids claimed(const detail::turn_result& by) {
    ids all;
    for (const detail::claim& c : by.claimed) all.push_back(c.what.id);
    return all;
  }
  ids claim(detail::session& with) const { return claimed(with.take({.claim_up_to = 10})); }
  ticket held(detail::session& with) const {
    tasks->submit_after(0s, {});
    const auto done = with.take({.claim_up_to = 1});
    return {done.claimed.at(0).what.id, done.claimed.at(0).what.fence};
  }
};

constexpr locking each_locking[] = {locking::rows, locking::database};

TEST_CASE("simulated: a call that is left before its commit has done nothing; after it, everything") {
  for (const locking how : each_locking)
    for (const stage where : each_stage) {
      in_use x(how);
      x.at("", where, [] { throw broken(); });
      CHECK_THROWS_AS(x.tasks->submit_after(0s, {.key = "k"}), broken);
      CHECK(x.db.rows().size() == (where == stage::committed ? 1 : 0));
      CHECK(x.claim(*x.a).size() == x.db.rows().size());
    }
}

}  // namespace durable_simulated_stages
