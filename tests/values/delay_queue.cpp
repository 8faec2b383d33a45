// The delay queue against a vector that is looked through each time.
#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <rondo/detail/delay_queue.hpp>

using rondo::tick_number;
using rondo::detail::delay_queue;

namespace {

class queue_trial {
 public:
  queue_trial(std::size_t buckets, std::uint64_t seed) : queue_(buckets), dues_(buckets), random_(seed) {}

  void set(std::size_t bucket, tick_number due) {
    queue_.set(bucket, due);
    dues_[bucket] = due;
    compare();
  }

  void remove(std::size_t bucket) {
    queue_.remove(bucket);
    dues_[bucket].reset();
    compare();
  }

  void run(int steps, std::uint64_t range) {
    for (int i = 0; i != steps; ++i) {
      const std::size_t bucket = random_() % dues_.size();
      switch (random_() % 8) {
        case 0:
          remove(bucket);
          break;
        case 1:
          remove_first();
          break;
        case 2:  // later, as when a due round has been taken
          if (dues_[bucket]) set(bucket, *dues_[bucket] + static_cast<tick_number>(random_() % 100));
          break;
        default:
          set(bucket, static_cast<tick_number>(random_() % range) - static_cast<tick_number>(range / 2));
      }
    }
    while (!queue_.empty()) remove_first();
  }

 private:
  void remove_first() {
    if (!queue_.empty()) remove(queue_.top_bucket());
  }

  void compare() {
    std::optional<tick_number> earliest;
    for (const auto& due : dues_)
      if (due && (!earliest || *due < *earliest)) earliest = due;
    REQUIRE(queue_.empty() == !earliest.has_value());
    if (!earliest) return;
    REQUIRE(queue_.top_due() == *earliest);
    REQUIRE((dues_[queue_.top_bucket()] == earliest));
    for (std::size_t b = 0; b != dues_.size(); ++b) REQUIRE(queue_.is_top(b) == (b == queue_.top_bucket()));
  }

  delay_queue queue_;
  std::vector<std::optional<tick_number>> dues_;
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("the bucket with the earliest next round is on top after every change") {
  for (const std::size_t buckets : {1U, 2U, 3U, 8U, 64U}) {
    for (std::uint64_t seed = 1; seed != 6; ++seed) {
      CAPTURE(buckets);
      CAPTURE(seed);
      queue_trial(buckets, seed).run(1500, seed % 2 == 0 ? 20 : 1'000'000);
    }
  }
}

TEST_CASE("a new delay queue is empty, and removing from it what is not there changes nothing") {
  delay_queue queue(4);
  CHECK(queue.empty());
  queue.remove(2);
  CHECK(queue.empty());
  queue.set(1, 5);
  queue.remove(2);
  CHECK(queue.top_bucket() == 1);
  CHECK(queue.top_due() == 5);
}

TEST_CASE("keys are compared, not subtracted: the ends of all ticks are in order") {
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

TEST_CASE("a bucket due at the last tick comes before those without a round") {
  delay_queue queue(3);
  queue.set(1, std::numeric_limits<tick_number>::max());
  CHECK_FALSE(queue.empty());
  CHECK(queue.top_bucket() == 1);
}

TEST_CASE("setting a bucket to the tick it has changes nothing") {
  delay_queue queue(2);
  queue.set(0, 5);
  queue.set(1, 7);
  queue.set(0, 5);
  CHECK(queue.top_bucket() == 0);
  queue.set(1, 7);
  queue.remove(0);
  CHECK(queue.top_due() == 7);
}
