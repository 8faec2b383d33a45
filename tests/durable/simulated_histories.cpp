// The simulated database: what becomes of sessions and transactions when the history goes back.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/microseconds.hpp"
#include "durable/simulated_database.hpp"
#include "durable/store_access.hpp"

namespace durable_simulated_histories {

using namespace durable_test;
using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::ticket;
using rondo::durable::store_error;

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
  static ticket ticket_of(const detail::turn_result& done) {
    return {done.claimed.at(0).what.id, done.claimed.at(0).what.fence};
  }
  void go_back(const simulated_copy& to) {
    now += 1ms;
    db.go_back(to);
  }
  /// Takes the turn in which it says that the history has gone back.
  static void tell(detail::session& s) { CHECK_THROWS_AS(s.take({.adopt = true}), store_error); }
};

constexpr locking each_locking[] = {locking::rows, locking::database};

TEST_CASE(
    "simulated: after the history has gone back, rows, ids and pauses are as they were, and claims are "
    "lost") {
  for (const locking how : each_locking) {
    in_use x(how);
    const auto kept = x.tasks->submit_after(0s, {.payload = "kept"});
    const ticket held = x.ticket_of(x.a->take({.claim_up_to = 1}));
    x.tasks->pause("other");
    const auto then = x.db.copy();
    const auto rows = x.db.rows();
    const auto lost = x.tasks->submit_after(0s, {.payload = "lost"});
    x.tasks->resume("other");
    x.a->take({.begun = {held}});
    x.a->take({.finished = {held}});
    const ticket claimed = x.ticket_of(x.b->take({.claim_up_to = 1}));
    CHECK(claimed.id == lost);
    x.go_back(then);
    CHECK(x.db.rows() == rows);
    CHECK(x.db.paused() == std::set<std::string>{"other"});
    CHECK(x.tasks->submit_after(0s, {.payload = "new"}) == lost);
    for (auto* s : {x.a.get(), x.b.get()}) x.tell(*s);
    CHECK(x.ticket_of(x.a->take({.adopt = true})) == held);
    CHECK(x.b->take({.begun = {claimed}, .adopt = true}).begun.empty());
    CHECK(x.b->take({.watched = {claimed}}).cancelled == std::vector{claimed});
    const auto again = x.b->take({.claim_up_to = 2}).claimed;
    REQUIRE(again.size() == 1);
    CHECK(again[0].what.payload == "new");
    CHECK(again[0].what.fence > claimed.fence);
    CHECK(x.tasks->find(kept).has_value());
  }
}

TEST_CASE(
    "simulated: each session says once that the history has gone back, however often it has to connect") {
  for (const locking how : each_locking) {
    in_use x(how);
    x.go_back(x.db.copy());
    x.a->changed();  // connects
    x.db.end_session("a");
    x.tell(*x.a);
    x.a->take({.adopt = true});
    x.connect("new")->take({.adopt = true});
    x.db.end_session("a");
    x.a->take({.adopt = true});
    x.go_back(x.db.copy());
    x.tell(*x.a);
  }
}

TEST_CASE("simulated: open transactions are undone when the history goes back, and their calls throw") {
  for (const locking how : each_locking) {
    in_use x(how);
    const auto then = x.db.copy();
    x.tasks->submit_after(0s, {});
    x.db.observe([&, done = false](const std::string&, stage s) mutable {
      if (s == stage::commits && !std::exchange(done, true)) x.db.go_back(then);
    });
    CHECK_THROWS_AS(x.tasks->submit_after(0s, {}), store_error);
    CHECK(x.db.rows().empty());
  }
}

TEST_CASE(
    "simulated: where fences repeat, another session may get the fence of a lost claim, and the same one may "
    "not") {
  for (const bool same : {true, false}) {
    in_use x(locking::rows);
    x.db.let_fences_repeat();
    x.tasks->submit_after(0s, {});
    const auto then = x.db.copy();
    const ticket lost = x.ticket_of(x.a->take({.claim_up_to = 1}));
    x.go_back(then);
    detail::session& s = same ? *x.a : *x.b;
    x.tell(s);
    const ticket now = x.ticket_of(s.take({.claim_up_to = 1}));
    CHECK((now == lost) == !same);
    if (!same) x.tell(*x.a);
    CHECK(x.a->take({.begun = {lost}}).begun.empty());
  }
}

}  // namespace durable_simulated_histories
