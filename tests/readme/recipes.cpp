// Listings of recipes.md.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/rondo.hpp>

namespace readme_recipes {

using namespace std::chrono_literals;

TEST_CASE("debounce and throttle") {
  rondo::manual_timer timer;
  std::vector<std::string> saved, shown;
  const auto save = [&](const std::string& path) { saved.push_back(path); };
  const auto show = [&](const std::string& path) { shown.push_back(path); };
  rondo::keyed_timers<std::string> saves(timer), views(timer);
  const auto on_change = [&](const std::string& path) {
    saves.set_after(path, 300ms, [=] { save(path); });      // debounce: after 300 ms without a change
    views.try_set_after(path, 300ms, [=] { show(path); });  // throttle: 300 ms after the first change
  };

  for (int i = 0; i != 10; ++i) {
    on_change("notes.txt");
    timer.advance(100ms);
  }
  CHECK(saved.empty());
  CHECK(shown.size() == 3);
  timer.advance(200ms);
  CHECK(saved.size() == 1);
  CHECK(shown.size() == 4);
}

TEST_CASE("heartbeat") {
  rondo::manual_timer timer;
  int sent = 0, lost = 0;
  const auto send_ping = [&] { ++sent; };
  const auto on_lost = [&] { ++lost; };
  timer.schedule(rondo::every(5s).jitter(0.1), send_ping);  // so that peers do not all send at once
  const rondo::timer_id silence = timer.schedule_after(15s, on_lost);
  const auto on_ping = [&] { timer.reschedule_after(silence, 15s); };

  timer.advance(14s);
  on_ping();
  timer.advance(14s);
  CHECK(lost == 0);
  timer.advance(1s);
  CHECK(lost == 1);
  CHECK(sent >= 5);
}

TEST_CASE("retry with backoff") {
  rondo::manual_timer timer;
  int tries = 0;
  bool is_up = false;
  bool gave_up = false;
  const auto connect = [&] {
    ++tries;
    return is_up;
  };
  const auto give_up = [&] { gave_up = true; };
  const auto start = [&] {
    // At once, then after 100, 200, 400 ms …, each plus up to half, so that clients do not all return together.
    timer.schedule(rondo::backoff(100ms, 2, 30s).first_after(0s).times(10).jitter(0.5),
                   [&](const rondo::firing& attempt) {
                     if (connect())
                       timer.cancel(attempt.id);  // this run was the last
                     else if (attempt.run == 10)
                       give_up();
                   });
  };

  start();
  timer.advance(1h);
  CHECK(tries == 10);
  CHECK(gave_up);
  tries = 0;
  gave_up = false;
  start();
  timer.advance(0s);
  CHECK(tries == 1);
  is_up = true;
  timer.advance(150ms);
  CHECK(tries == 2);
  timer.advance(1h);
  CHECK(tries == 2);
  CHECK(!gave_up);
  CHECK(timer.pending() == 0);
}

/// Makes one task due every `gap`; tasks submitted sooner wait their turn.
class rate_limiter {
 public:
  rate_limiter(rondo::scheduler& timers, rondo::duration gap) : timers_(timers), gap_(gap) {}

  void submit(rondo::task work) {
    const std::lock_guard hold(mutex_);
    const rondo::time_point start = std::max(next_, timers_.now());
    timers_.schedule_at(start, std::move(work));
    next_ = start + gap_;
  }

 private:
  rondo::scheduler& timers_;
  const rondo::duration gap_;
  std::mutex mutex_;
  rondo::time_point next_{};
};

TEST_CASE("rate limit") {
  rondo::manual_timer timer;
  std::vector<std::int64_t> at;
  rate_limiter limited(timer, 100ms);
  const auto note = [&] { at.push_back(timer.now().time_since_epoch() / 1ms); };
  for (int i = 0; i != 3; ++i) limited.submit(note);
  timer.advance(1s);
  limited.submit(note);
  timer.advance(0s);
  CHECK(at == std::vector<std::int64_t>{0, 100, 200, 1000});
}

struct connection : rondo::wheel_node {
  bool is_open = true;
  void close() { is_open = false; }
};

/// Closes connections that have been silent for a minute. For one thread, which counts time in milliseconds.
class idle_connections {
 public:
  void heard_of(connection& c, rondo::tick_number now) { quiet_.schedule(c, now + 60'000); }  // moves it
  void look(rondo::tick_number now) {
    quiet_.advance(now, [](connection& c) { c.close(); });
  }

 private:
  rondo::wheel<connection> quiet_;  // allocates nothing per connection; a destroyed node removes itself
};

TEST_CASE("idle connections, in the intrusive wheel") {
  std::vector<connection> connections(3);
  idle_connections idle;
  for (connection& c : connections) idle.heard_of(c, 0);
  idle.heard_of(connections[1], 30'000);
  {
    connection brief;
    idle.heard_of(brief, 0);
  }
  idle.look(60'000);
  CHECK(!connections[0].is_open);
  CHECK(connections[1].is_open);
  idle.look(90'000);
  CHECK(!connections[1].is_open);
}

/// Leases on names: each is held by one owner at a time, and for a limited time.
class leases {
 public:
  explicit leases(rondo::scheduler& timers) : timers_(timers) {}

  /// Returns the proof of the lease; none if somebody else holds it.
  std::optional<rondo::timer_id> take(const std::string& what, rondo::duration how_long) {
    const std::lock_guard hold(mutex_);
    if (const auto last = last_.find(what); last != last_.end() && timers_.pending(last->second)) return {};
    return last_[what] = timers_.schedule_after(how_long, [] {});
  }

  /// False if the lease is over.
  bool renew(rondo::timer_id lease, rondo::duration how_long) {
    return timers_.reschedule_after(lease, how_long);
  }
  bool give_back(rondo::timer_id lease) { return timers_.cancel(lease) == rondo::cancel_result::cancelled; }

 private:
  std::mutex mutex_;
  std::map<std::string, rondo::timer_id> last_;
  rondo::timer_scope timers_;
};

TEST_CASE("leases") {
  rondo::manual_timer timer;
  leases of(timer);
  const auto first = of.take("printer", 10s);
  REQUIRE(first);
  CHECK(of.take("scanner", 10s));
  CHECK(!of.take("printer", 10s));
  timer.advance(9s);
  CHECK(of.renew(*first, 10s));
  timer.advance(9s);
  CHECK(!of.take("printer", 10s));
  timer.advance(1s);
  CHECK(!of.renew(*first, 10s));
  const auto second = of.take("printer", 10s);
  REQUIRE(second);
  CHECK(!of.give_back(*first));
  CHECK(!of.take("printer", 10s));
  CHECK(of.give_back(*second));
  CHECK(of.take("printer", 10s));
}

}  // namespace readme_recipes
