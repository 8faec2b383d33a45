// shrink_to_fit() gives back memory that holds no timer, and changes nothing else.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "failing_new.hpp"
#include "recording.hpp"
#include "times_slower.hpp"

namespace wheel_shrink {

using namespace wheel_test;
using namespace rondo::test;

constexpr std::size_t segment_bytes = (32 * 64 + 1) * sizeof(void*);

/// The memory of a wheel beyond what it had when it was new.
class held {
 public:
  std::ptrdiff_t bytes() const { return bytes_held() - before_; }

 private:
  const std::ptrdiff_t before_ = bytes_held();
};

struct range {
  std::string where;
  tick_number first, ticks;
};
const range ranges[] = {{"one tick", 600, 1},
                        {"near", 0, 512},
                        {"near and far", 0, 100'000},
                        {"thirty seconds away", 30'000, 1000},
                        {"up to years", 0, tick_number{1} << 40},
                        {"overdue", -100'000, 90'000}};

class burst {
 public:
  burst(wheel& w, std::deque<timer>& timers, const range& r) {
    for (timer& t : timers) {
      w.schedule(t, r.first + static_cast<tick_number>(random() % static_cast<std::uint64_t>(r.ticks)));
    }
  }

 private:
  std::uint64_t random() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 16;
  }
  std::uint64_t state_ = 1;
};

const std::size_t many = a_million;

TEST_CASE("after a burst has fired or was cancelled, shrink_to_fit() makes a wheel as small as a new one" *
          doctest::skip(!failing_new::available)) {
  std::deque<timer> timers(many);
  for (const range& r : ranges) {
    for (const bool fires : {true, false}) {
      CAPTURE(r.where);
      CAPTURE(fires);
      wheel w;
      const held since_new;
      const burst all(w, timers, r);
      CHECK(since_new.bytes() >= static_cast<std::ptrdiff_t>(sizeof(void*) * many));
      if (fires)
        CHECK(w.advance(r.first + r.ticks > 0 ? r.first + r.ticks : 0, [](timer&) {}) == many);
      else
        for (timer& t : timers) w.cancel(t);
      CHECK(since_new.bytes() > 0);
      w.shrink_to_fit();
      CHECK(since_new.bytes() == 0);
      CHECK(w.empty());
      CHECK(w.next_due() == std::nullopt);
    }
  }
}

TEST_CASE(
    "after a burst that was cancelled but for a few timers, little memory remains, and these fire in order") {
  std::deque<timer> timers(many);
  timer a("a"), b("b"), c("c"), d("d"), e("e");
  for (const range& r : ranges) {
    CAPTURE(r.where);
    wheel w;
    const held since_new;
    w.schedule(d, 2'000'000);
    w.schedule(b, 20);
    const burst all(w, timers, r);
    w.schedule(a, -5);
    w.schedule(c, 20);
    w.schedule(e, 2'000'000);
    for (timer& t : timers) w.cancel(t);
    w.shrink_to_fit();
    // A segment for each of the chains, and the tables. These have at most 25 bytes for a chunk of 63 timers, or up to
    // twice that, because one of the segments was allocated late.
    constexpr auto most = static_cast<std::ptrdiff_t>(5 * segment_bytes + many / 63 * 25 * 2);
    if (failing_new::available) CHECK(since_new.bytes() <= most);
    CHECK(w.size() == 5);
    CHECK(w.next_due() == -5);
    CHECK(fired(w, 3'000'000) == "a@0 b@20 c@20 d@2000000 e@2000000");
    w.shrink_to_fit();
    if (failing_new::available) CHECK(since_new.bytes() == 0);
  }
}

TEST_CASE("shrink_to_fit() during redistribution keeps the order, and cancelled timers leave no memory" *
          doctest::skip(!failing_new::available)) {
  std::deque<timer> first(3000), second(3000), third(3000);
  timer early("early"), last("last");
  for (const bool all_fire : {true, false}) {
    CAPTURE(all_fire);
    wheel w;
    const held since_new;
    for (auto* timers : {&first, &second, &third})
      for (timer& t : *timers) w.schedule(t, 100'000);
    w.schedule(early, 99'900);
    w.schedule(last, 100'000);
    CHECK(fired(w, 99'900) == "early@99900");  // 4,096 or twice as many enter the window with it
    for (timer& t : second) w.cancel(t);
    w.shrink_to_fit();
    if (!all_fire) {
      for (auto* timers : {&first, &third})
        for (timer& t : *timers) w.cancel(t);
      w.shrink_to_fit();
    }
    std::size_t number = all_fire ? 0 : 6000;
    w.advance(100'000, [&](timer& t) {
      const timer* const expected = number < 3000   ? &first[number]
                                    : number < 6000 ? &third[number - 3000]
                                                    : &last;
      CHECK(&t == expected);
      ++number;
    });
    CHECK(number == 6001);
    w.shrink_to_fit();
    CHECK(since_new.bytes() == 0);
  }
}

TEST_CASE("far timers that are cancelled while they are being redistributed leave no memory" *
          doctest::skip(!failing_new::available)) {
  std::deque<timer> timers(9000);
  timer early("early");
  wheel w;
  const held since_new;
  for (timer& t : timers) w.schedule(t, 100'000);
  w.schedule(early, 99'900);
  CHECK(fired(w, 99'900) == "early@99900");
  for (timer& t : timers) w.cancel(t);
  w.shrink_to_fit();
  CHECK(since_new.bytes() == 0);
  CHECK(w.next_due() == std::nullopt);
}

TEST_CASE("the tables shrink with the number of timers" * doctest::skip(!failing_new::available)) {
  std::deque<timer> timers(many);
  wheel w;
  const held since_new;
  for (std::size_t i = 0; i != timers.size(); ++i) w.schedule(timers[i], i < 1000 ? 900 : 10);
  w.advance(10, [](timer&) {});
  const std::ptrdiff_t tables = since_new.bytes();
  w.shrink_to_fit();
  CHECK(since_new.bytes() <= tables - static_cast<std::ptrdiff_t>(8 * many / (16 * 1024) * 500));
  // A thousand timers take 16 chunks, in one segment. The lists of far timers take 4 KiB.
  CHECK(since_new.bytes() <= static_cast<std::ptrdiff_t>(segment_bytes + 8 * 580 + 4500));
  CHECK(w.advance(900, [](timer&) {}) == 1000);
}

TEST_CASE("shrink_to_fit() without memory for smaller tables still gives back the rest" *
          doctest::skip(!failing_new::available)) {
  std::deque<timer> timers(many);
  timer stays("stays");
  wheel w;
  const held since_new;
  w.schedule(stays, 900);
  for (timer& t : timers) w.schedule(t, 10);
  w.advance(10, [](timer&) {});
  const std::ptrdiff_t before = since_new.bytes();
  for (const std::size_t after : {0U, 1U, 2U, 3U}) {
    const failing_new memory(after);
    w.shrink_to_fit();
    CHECK(memory.struck());
  }
  const std::ptrdiff_t without_memory = since_new.bytes();
  CHECK(without_memory <= before - static_cast<std::ptrdiff_t>(segment_bytes));
  w.shrink_to_fit();
  CHECK(since_new.bytes() < without_memory);
  CHECK(fired(w, 900) == "stays@900");
}

TEST_CASE("after shrink_to_fit() a wheel works as before, even if its next timer finds no memory") {
  wheel w;
  timer a("a"), b("b");
  for (const tick_number distance : {3, 1000, 1'000'000, -7}) {
    CAPTURE(distance);
    for (int turn = 0; turn != 3; ++turn) {
      w.schedule(a, w.now() + distance);
      if (turn == 1) w.cancel(a);
      w.shrink_to_fit();
      if (failing_new::available && turn == 1) {
        const failing_new no_memory;
        CHECK_THROWS_AS(w.schedule(a, w.now() + distance), std::bad_alloc);
        CHECK_FALSE(a.scheduled());
      }
      w.schedule(b, w.now() + distance);
      const std::string now = std::to_string(distance < 0 ? w.now() : w.now() + distance);
      const std::string expected = (turn == 1 ? "" : "a@" + now + " ") + "b@" + now;
      CHECK(fired(w, w.now() + (distance < 0 ? 0 : distance)) == expected);
      w.shrink_to_fit();
    }
  }
}

TEST_CASE("shrink_to_fit() of a new wheel gives back nothing, and needs no memory" *
          doctest::skip(!failing_new::available)) {
  wheel w;
  const std::ptrdiff_t before = bytes_held();
  const failing_new no_memory;
  w.shrink_to_fit();
  CHECK_FALSE(no_memory.struck());
  CHECK(bytes_held() == before);
}

TEST_CASE("a burst that is moved in the reverse order leaves nothing that shrink_to_fit() would keep" *
          doctest::skip(!failing_new::available)) {
  std::deque<timer> timers(200'000);
  wheel w;
  const held since_new;
  for (timer& t : timers) w.schedule(t, 30'000);
  for (auto t = timers.rbegin(); t != timers.rend(); ++t) w.schedule(*t, 30'000);
  CHECK(w.advance(30'000, [](timer&) {}) == timers.size());
  CHECK(since_new.bytes() <= 256 * 1024);
  w.shrink_to_fit();
  CHECK(since_new.bytes() == 0);
}

TEST_CASE("a callback of advance() may call shrink_to_fit(), whichever list its timer was in") {
  for (const tick_number due : {tick_number{20}, tick_number{700}, tick_number{-50}, tick_number{1} << 40}) {
    CAPTURE(due);
    wheel w;
    timer a("a"), b("b"), c("c"), later("later");
    w.schedule(a, due);
    w.schedule(b, due);
    w.schedule(later, due + 1);
    const tick_number to = tick_number{1} << 41;
    std::string seen;
    w.advance(to, [&](timer& t) {
      seen += t.name;
      w.shrink_to_fit();
      if (&t == &b) w.schedule(c, due);
      if (&t == &later) w.shrink_to_fit();
    });
    CHECK(seen == "abclater");
    CHECK(w.empty());
  }
}

TEST_CASE("a callback may call shrink_to_fit() after it has cancelled all timers, and schedule new ones") {
  for (const tick_number due : {tick_number{20}, tick_number{-50}, tick_number{100'000}}) {
    CAPTURE(due);
    wheel w;
    std::deque<timer> timers(500);
    timer again("again");
    for (timer& t : timers) w.schedule(t, due);
    std::size_t count = 0;
    w.advance(200'000, [&](timer& t) {
      ++count;
      if (&t != &timers[0]) return;
      for (timer& other : timers) w.cancel(other);
      w.shrink_to_fit();
      w.schedule(again, due);
    });
    CHECK(count == 2);
    CHECK(w.empty());
  }
}

}  // namespace wheel_shrink
