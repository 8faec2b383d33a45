// No allocation per timer, and no memory that only grows.
#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "recording.hpp"
#include "times_slower.hpp"

using namespace wheel_test;
using rondo::test::a_million;
using rondo::test::allocations;
using rondo::test::bytes_held;
using rondo::test::failing_new;

namespace {

template <class Act>
std::size_t allocations_of(Act&& act) {
  const std::size_t before = allocations();
  act();
  return allocations() - before;
}

}  // namespace

// Where there is no such operator new, there is nothing to test.
TEST_SUITE_BEGIN("memory" * doctest::skip(!failing_new::available));

TEST_CASE("a node with four bytes of payload takes 24 bytes") {
  struct small : rondo::wheel_node {
    std::uint32_t payload = 0;
  };
  CHECK(sizeof(small) == 24);
  CHECK(sizeof(rondo::wheel_node) == 24);
}

TEST_CASE("a wheel that turns with the same load over and over does not allocate for its timers") {
  struct {
    std::string what;
    tick_number period;
    tick_number spread;  // ticks over which the timers are spread
    std::size_t most_allocations;
  } const loads[] = {
      {"shorter than a turn", 100, 100, 0},
      {"a turn", 512, 512, 0},
      {"bursts", 300, 3, 0},
      // A bucket may need a new array when its round reaches a power of two: once a turn doubled.
      {"many turns", 512 * 50 + 3, 512 * 50 + 3, 2 * 512}};
  for (const auto& load : loads) {
    CAPTURE(load.what);
    wheel w;
    std::deque<timer> timers(500);
    tick_number next = 0;
    for (timer& t : timers) w.schedule(t, next++ % load.spread);
    const auto turn = [&](tick_number periods) {
      return w.advance(w.now() + periods * load.period,
                       [&](timer& t) { w.schedule(t, w.now() + load.period); });
    };
    // Arrays are swapped between places: each has to come round to where it was largest.
    turn(600);
    CHECK(allocations_of([&] { CHECK(turn(300) == 300 * timers.size()); }) <= load.most_allocations);
  }
}

TEST_CASE("timers that are set and cancelled over and over allocate nothing") {
  wheel w;
  std::deque<timer> timers(1000);
  tick_number due = 0;
  const auto churn = [&](int rounds) {
    for (int i = 0; i != rounds; ++i) {
      for (timer& t : timers) w.schedule(t, ++due % 5000);
      for (timer& t : timers) w.cancel(t);
    }
  };
  churn(100);
  CHECK(allocations_of([&] { churn(100); }) == 0);
}

TEST_CASE("timers that are moved over and over allocate nothing") {
  wheel w;
  std::deque<timer> timers(1000);
  tick_number step = 0;
  const auto churn = [&](int rounds) {
    for (int i = 0; i != rounds; ++i)
      for (timer& t : timers) w.schedule(t, ++step % 3000);
  };
  churn(100);
  CHECK(allocations_of([&] { churn(100); }) == 0);
}

TEST_CASE("a million timers set and cancelled, none of them ever due, leave no memory behind") {
  wheel w;
  // These stay, so that no bucket and no round becomes empty and could be forgotten as a whole.
  std::deque<timer> staying(3 * 512);
  tick_number due = 512;
  for (timer& t : staying) w.schedule(t, due++);
  timer passing;
  const auto million = [&](tick_number first, tick_number ticks) {
    for (int i = 0; i != a_million; ++i) {
      w.schedule(passing, first + i % ticks);
      w.cancel(passing);
    }
  };
  struct {
    std::string where;
    tick_number first, ticks;
  } const places[] = {{"one tick", 600, 1},
                      {"one tick of a later round", 1100, 1},
                      {"all buckets, three rounds", 512, 3 * 512},
                      {"far rounds", 100'000, 512 * 512}};
  for (const auto& place : places) {
    CAPTURE(place.where);
    million(place.first, place.ticks);
    const auto before = bytes_held();
    CHECK(allocations_of([&] { million(place.first, place.ticks); }) == 0);
    CHECK(bytes_held() == before);
  }
  CHECK(w.size() == staying.size());
}

TEST_CASE("a clock that moves on past a million cancelled timers leaves no memory behind") {
  wheel w;
  std::deque<timer> timers(64);
  const auto run = [&](int count) {
    for (int i = 0; i != count; ++i) {
      timer& t = timers[static_cast<std::size_t>(i) % timers.size()];
      w.schedule(t, w.now() + 1000 + i % 7);  // cancels what it was set to before
      if (i % 4 == 0) w.advance(w.now() + 1, [](timer&) {});
    }
  };
  run(500'000);
  const auto before = bytes_held();
  run(500'000);
  CHECK(bytes_held() <= before + 1024);
}

TEST_CASE("timers up to a million take no more than 40 bytes each, payload and bookkeeping together") {
  struct small : rondo::wheel_node {
    std::uint32_t payload = 0;
  };
  constexpr std::size_t count = 1'000'000;
  const auto before = bytes_held();
  std::vector<small> timers(count);
  rondo::wheel<small> w;
  tick_number due = 0;
  for (small& t : timers) w.schedule(t, due = (due * 1103515245 + 12345) % 100'000);
  CHECK(static_cast<std::size_t>(bytes_held() - before) <= 40 * count);
}

TEST_CASE("a burst gives its memory back once it has fired, but for a little") {
  wheel w;
  std::deque<timer> timers(200'000);
  const auto before = bytes_held();
  for (timer& t : timers) w.schedule(t, 5);
  CHECK(bytes_held() - before >= 8 * 200'000);
  w.advance(5, [](timer&) {});
  CHECK(bytes_held() - before <= 256 * 1024);
}

TEST_SUITE_END();
