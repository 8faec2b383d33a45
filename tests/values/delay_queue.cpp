// The delay queue, compared with a vector that is searched every time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <rondo/detail/delay_queue.hpp>

#include "failing_new.hpp"

namespace values_delay_queue {

using namespace rondo;
using namespace rondo::test;
using rondo::detail::delay_queue;

class queue_trial {
 public:
  queue_trial(std::size_t entries, std::uint64_t seed) : queue_(entries), dues_(entries), random_(seed) {}

  void set(std::size_t entry, tick_number due) {
    queue_.set(entry, due);
    dues_[entry] = due;
    compare();
  }

  void remove(std::size_t entry) {
    queue_.set(entry, std::nullopt);
    dues_[entry].reset();
    compare();
  }

  void run(int steps, std::uint64_t range) {
    for (int i = 0; i != steps; ++i) {
      const std::size_t entry = random_() % dues_.size();
      switch (random_() % 8) {
        case 0:
          remove(entry);
          break;
        case 1:
        case 2:
          remove_first();
          break;
        case 3:  // later, as when the earliest node was cancelled
          if (dues_[entry]) set(entry, *dues_[entry] + static_cast<tick_number>(random_() % 100));
          break;
        default:
          set(entry, static_cast<tick_number>(random_() % range) - static_cast<tick_number>(range / 2));
      }
    }
    while (queue_.top != delay_queue::none) remove_first();
  }

 private:
  void remove_first() {
    if (queue_.top != delay_queue::none) remove(queue_.top);
  }

  void compare() {
    // Among equal ticks, the entry with the smallest number comes first.
    const auto comes_first = [](const auto& a, const auto& b) { return a && (!b || *a < *b); };
    const auto first = std::min_element(dues_.begin(), dues_.end(), comes_first);
    REQUIRE((queue_.top == delay_queue::none) == !first->has_value());
    const auto number = static_cast<std::size_t>(first - dues_.begin());
    for (std::size_t e = 0; e != dues_.size(); ++e) {
      REQUIRE((queue_.due_of(e) == dues_[e]));
      REQUIRE((queue_.top == e) == (first->has_value() && e == number));
    }
    REQUIRE(queue_.fault() == "");
    if (!first->has_value()) return;
    REQUIRE(queue_.top == number);
    REQUIRE(queue_.top_due == **first);
  }

  delay_queue queue_;
  std::vector<std::optional<tick_number>> dues_;
  std::mt19937_64 random_;
};

TEST_CASE(
    "after every change the entry with the earliest tick is on top; among equal ticks, the least number") {
  for (const std::size_t entries : {1U, 2U, 3U, 8U, 64U}) {
    for (std::uint64_t seed = 1; seed != 6; ++seed) {
      CAPTURE(entries);
      CAPTURE(seed);
      queue_trial(entries, seed).run(1500, seed % 2 == 0 ? 20 : 1'000'000);
    }
  }
}

TEST_CASE("a new delay queue is empty, and removing an entry that is not in it changes nothing") {
  delay_queue queue(4);
  CHECK(queue.top == delay_queue::none);
  queue.set(2, std::nullopt);
  CHECK(queue.top == delay_queue::none);
  queue.set(1, 5);
  queue.set(2, std::nullopt);
  CHECK(queue.top == 1);
  CHECK(queue.top_due == 5);
}

TEST_CASE("keys are compared, not subtracted: the first and the last tick are ordered correctly") {
  constexpr tick_number first = std::numeric_limits<tick_number>::min();
  constexpr tick_number last = std::numeric_limits<tick_number>::max();
  queue_trial trial(4, 1);
  trial.set(0, last);
  trial.set(1, first);
  trial.set(2, 0);
  trial.set(1, last);
  trial.set(3, first);
  trial.remove(3);
  trial.set(0, first);
  trial.remove(0);
  trial.remove(2);
  trial.remove(1);
}

TEST_CASE("an entry with the last tick counts as being in the queue") {
  delay_queue queue(3);
  queue.set(1, std::numeric_limits<tick_number>::max());
  CHECK(queue.top != delay_queue::none);
  CHECK(queue.top == 1);
}

TEST_CASE("setting an entry to the tick it has changes nothing") {
  delay_queue queue(2);
  queue.set(0, 5);
  queue.set(1, 7);
  queue.set(0, 5);
  CHECK(queue.top == 0);
  queue.set(1, 7);
  queue.set(0, std::nullopt);
  CHECK(queue.top_due == 7);
}

TEST_CASE("an entry that is removed and set again has only its new tick") {
  delay_queue queue(3);
  queue.set(0, 5);
  queue.set(1, 7);
  queue.set(0, std::nullopt);
  CHECK(queue.due_of(0) == std::nullopt);
  CHECK(queue.top == 1);
  queue.set(0, 9);
  CHECK(queue.due_of(0) == 9);
  CHECK(queue.top == 1);
  queue.set(1, std::nullopt);
  CHECK(queue.top == 0);
  CHECK(queue.top_due == 9);
}

TEST_CASE("a delay queue allocates nothing after its constructor, even with all its entries in it" *
          doctest::skip(!failing_new::available)) {
  for (const std::size_t entries : {1U, 2U, 529U}) {
    CAPTURE(entries);
    delay_queue queue(entries);
    const std::size_t before = allocations();
    {
      const failing_new memory(0);  // set() is noexcept: a failing allocation would end the program
      for (tick_number turn = 0; turn != 20; ++turn) {
        for (std::size_t e = 0; e != entries; ++e) queue.set(e, static_cast<tick_number>(e * 7 % 64) + turn);
        for (std::size_t e = 0; e < entries; e += 3) queue.set(e, 200 + turn);  // later
        for (std::size_t e = 1; e < entries; e += 2) queue.set(e, std::nullopt);
        while (turn % 4 == 0 && queue.top != delay_queue::none) queue.set(queue.top, std::nullopt);
      }
    }
    CHECK(allocations() == before);
    CHECK(queue.fault() == "");
  }
}

}  // namespace values_delay_queue
