// Handlers that throw.
#include <doctest/doctest.h>

#include "durable/dispatcher/backoff.hpp"
#include "durable/workplace.hpp"

namespace durable_dispatcher_retries {

using namespace durable_test;

std::string reason_of(const workplace& w, std::int64_t id) {
  return w.ask("SELECT reason FROM rondo_task WHERE state = 3 AND id = " + std::to_string(id));
}

TEST_CASE("a handler that throws is called again, and the task is done when it returns") {
  workplace w;
  diary d(w);
  const auto id = w.tasks->submit_after(1s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        if (t.attempt < 4) throw std::runtime_error("out of stamps");
      },
      w.options());
  w.pass(30s, {&runs});
  const auto e = d.entries();
  REQUIRE(e.size() == 4);
  for (std::size_t n = 0; n != 4; ++n) CHECK(e[n].what.attempt == static_cast<int>(n + 1));
  for (std::size_t n = 1; n != 4; ++n) {
    const auto wait = e[n].what.due - e[n - 1].at;  // random; the steps of the test do not matter
    CHECK(wait >= 0s);
    CHECK(wait <= (1 << (n - 1)) * 1s + 1us);
    CHECK(e[n].at >= e[n].what.due);
    CHECK(e[n].what.fence > e[n - 1].what.fence);
  }
  const auto s = runs.stats();
  CHECK(s.retried == 3);
  CHECK(s.completed == 1);
  CHECK(s.dead == 0);
  CHECK(s.fired == 4);
  CHECK(s.run_time.count() == 4);
  CHECK(w.tasks->find(id) == std::nullopt);
  CHECK(w.errors().size() == 3);
  CHECK(w.was_told("task " + std::to_string(id) + " of queue 'default', attempt 2: out of stamps"));
}

TEST_CASE("after max_attempts the task is dead; its reason is kept, and its key is free") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.max_attempts = 3;
  o.first_retry = 100ms;
  const auto id = w.tasks->submit_after(0s, {.key = "k"});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        throw std::runtime_error("never works");
      },
      o);
  w.pass(20s, {&runs});
  CHECK(d.size() == 3);
  const auto s = runs.stats();
  CHECK(s.retried == 2);
  CHECK(s.dead == 1);
  CHECK(s.completed == 0);
  CHECK(w.tasks->find(id) == std::nullopt);  // not live
  CHECK(reason_of(w, id) == "never works");
  CHECK(w.was_told("is dead, after 3 attempts: never works"));
  CHECK(w.tasks->submit_after(1h, {.key = "k"}) > id);
}

TEST_CASE("if the limit is one attempt, there is only one") {
  workplace w;
  auto o = w.options();
  o.max_attempts = 1;
  const auto id = w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { throw 7; }, o);
  REQUIRE(w.settle({&runs}));
  CHECK(runs.stats().dead == 1);
  CHECK(runs.stats().retried == 0);
  CHECK(reason_of(w, id) == "the handler threw something other than a std::exception");
}

TEST_CASE("an exception from on_error stops nothing") {
  workplace w;
  auto o = w.options();
  o.on_error = [](const std::string&) { throw std::runtime_error("on_error itself"); };
  o.first_retry = 0s;
  o.max_attempts = 2;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { throw std::runtime_error("x"); }, o);
  w.pass(5s, {&runs});
  CHECK(runs.stats().dead == 1);
}

TEST_CASE("a failed attempt does not wait longer than longest_retry") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.first_retry = 10s;
  o.longest_retry = 2s;
  o.max_attempts = 6;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        throw std::runtime_error("x");
      },
      o);
  w.pass(40s, {&runs});
  const auto e = d.entries();
  REQUIRE(e.size() == 6);
  for (std::size_t n = 1; n != e.size(); ++n) CHECK(e[n].what.due - e[n - 1].at <= 2s + 1us);
}

TEST_CASE("a retry runs when its wait is over, not at the next periodic look") {
  workplace w;
  diary d(w);
  auto o = w.options();
  o.longest_retry = 50ms;
  o.max_attempts = 100;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks,
      [&](const task& t) {
        d.write(t);
        throw std::runtime_error("x");
      },
      o);
  w.pass(1s, {&runs}, 1ms);
  const auto e = d.entries();
  REQUIRE(e.size() >= 20);
  for (std::size_t n = 1; n != e.size(); ++n) {
    CHECK(e[n].at >= e[n].what.due);
    CHECK(e[n].at <= e[n].what.due + 2ms);  // a tick, and a step of the test
  }
  // The turn that reports the failure also claims the retry; another one begins it.
  CHECK(w.line().count() <= 2 * e.size() + 10);
}

TEST_CASE("full jitter draws from the full range, and never outside it") {
  detail::backoff b(1);
  for (const int n : {1, 2, 5, 64, 1000}) {
    CAPTURE(n);
    const duration most = n < 5 ? (1 << (n - 1)) * 1s : duration(n == 5 ? 16s : 600s);
    duration least = duration::max(), longest = duration::zero();
    for (int i = 0; i != 10000; ++i) {
      const duration d = b.full_jitter(n, 1s, 600s);
      least = std::min(least, d);
      longest = std::max(longest, d);
    }
    CHECK(least >= 0s);
    CHECK(least < most / 100);
    CHECK(longest <= most);
    CHECK(longest > most - most / 100);
  }
}

TEST_CASE("a backoff may be zero, or up to the longest durations") {
  detail::backoff b(2);
  CHECK(b.full_jitter(1000, 0s, 10min) == 0s);
  CHECK(b.full_jitter(3, 1s, 0s) == 0s);
  for (int i = 0; i != 100; ++i) CHECK(b.full_jitter(100, 1ns, duration::max()) >= 0s);
}

TEST_CASE("the backoff after a failure of the database is 100 ms to 5 s") {
  detail::backoff b(3);
  for (const int n : {1, 2, 10}) {
    const duration most = n == 10 ? 5s : duration((1 << n) * 100ms);
    duration least = duration::max(), longest = duration::zero();
    for (int i = 0; i != 10000; ++i) {
      const duration d = b.at_least(n, 100ms, 5s);
      least = std::min(least, d);
      longest = std::max(longest, d);
    }
    CHECK(least >= 100ms);
    CHECK(least < 100ms + most / 50);
    CHECK(longest <= most);
    CHECK(longest > most - most / 50);
  }
}

TEST_CASE("the reason is kept as UTF-8 of at most 1000 bytes, whatever the handler threw") {
  const auto kept = [](const std::string& thrown) {
    workplace w;
    auto o = w.options();
    o.max_attempts = 1;
    const auto id = w.tasks->submit_after(0s, {});
    dispatcher runs(
        w.time, *w.tasks, [&](const task&) { throw std::runtime_error(thrown); }, o);
    REQUIRE(w.settle({&runs}));
    CHECK(runs.stats().dead == 1);
    return reason_of(w, id);
  };
  CHECK(kept("Stra\xDF"
             "e, \xF0\x9F\x98, Stra\xC3\x9F"
             "e\n") ==
        "Stra\\xdfe, \\xf0\\x9f\\x98, Stra\xC3\x9F"
        "e\n");
  CHECK((kept(std::string(1000, 'x')) == std::string(1000, 'x')));
  CHECK((kept(std::string(1001, 'x')) == std::string(997, 'x') + "..."));
  // Never truncated in the middle of a character.
  std::string umlauts = "x";
  for (int i = 0; i != 1000; ++i) umlauts += "\xC3\xBC";
  CHECK((kept(umlauts) == umlauts.substr(0, 997) + "..."));
  umlauts.erase(0, 1);
  CHECK((kept(umlauts) == umlauts.substr(0, 996) + "..."));
}

TEST_CASE("what a handler throws is one line for on_error, whatever it contains") {
  workplace w;
  auto o = w.options();
  o.max_attempts = 1;
  o.queues = {"two\nlines"};
  w.tasks->submit_after(0s, {.queue = "two\nlines"});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { throw std::runtime_error("no\r\nstamps\tleft\x7f"); }, o);
  REQUIRE(w.settle({&runs}));
  REQUIRE(runs.stats().dead == 1);
  for (const std::string& line : w.errors()) {
    CAPTURE(line);
    CHECK(line.find("queue 'two lines'") != std::string::npos);
    CHECK(line.find("no  stamps left ") != std::string::npos);
    CHECK(line.find_first_of("\r\n\t\x7f") == std::string::npos);
  }
  CHECK(w.errors().size() == 2);
}

TEST_CASE("the reason is sent to the database only if it will be kept") {
  workplace w;
  auto o = w.options();
  o.max_attempts = 2;
  w.tasks->submit_after(0s, {});
  dispatcher runs(
      w.time, *w.tasks, [](const task&) { throw std::runtime_error("x"); }, o);
  w.pass(5s, {&runs});
  REQUIRE(runs.stats().dead == 1);
  std::vector<std::string> reasons;
  for (const turn& t : w.line().turns())
    for (const detail::failure& f : t.failed) reasons.push_back(f.reason);
  CHECK(reasons == std::vector<std::string>{"", "x"});
}

}  // namespace durable_dispatcher_retries
