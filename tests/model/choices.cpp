// Choices: drawn, read, recorded and replayed.
#include <doctest/doctest.h>

#include "model/choices.hpp"

namespace model_choices {

using namespace rondo::test;

/// Makes choices of every kind; some of them depend on earlier ones.
std::vector<std::uint64_t> choose_all(choices& c) {
  std::vector<std::uint64_t> chosen;
  const choices::weights likely = c.varied({3, 1, 6});
  while (chosen.size() < 500 && c.all_but_one_in(20)) {
    chosen.push_back(c.below(1 + chosen.size()));
    chosen.push_back(c.weighted(likely));
    chosen.push_back(c.one_in(3));
    chosen.push_back(c.amount(100, std::uint64_t{1} << 50));
  }
  return chosen;
}

TEST_CASE("drawn choices can be replayed, and are recorded again as they were") {
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    choices drawn = choices::drawn(seed);
    const auto chosen = choose_all(drawn);
    choices replayed = choices::replayed(drawn.made());
    CHECK(choose_all(replayed) == chosen);
    CHECK(replayed.made() == drawn.made());
  }
}

TEST_CASE("choices that were read from bytes can be replayed") {
  std::vector<std::uint8_t> bytes;
  for (unsigned i = 0; i != 300; ++i) bytes.push_back(static_cast<std::uint8_t>(i * i * 7 + 1));
  choices read = choices::read(bytes);
  const auto chosen = choose_all(read);
  CHECK(chosen.size() > 40);
  choices replayed = choices::replayed(read.made());
  CHECK(choose_all(replayed) == chosen);
}

TEST_CASE("equal seeds draw the same choices, different seeds do not") {
  choices a = choices::drawn(1), again = choices::drawn(1), b = choices::drawn(2);
  choose_all(a);
  choose_all(again);
  choose_all(b);
  CHECK(a.made() == again.made());
  CHECK(a.made() != b.made());
}

TEST_CASE("after the end of a record or of the bytes, every choice is 0, the simplest") {
  for (choices c : {choices::replayed({}), choices::read({})}) {
    CHECK(c.below(10) == 0);
    CHECK(c.weighted({1, 2, 3}) == 0);
    CHECK_FALSE(c.one_in(2));
    CHECK_FALSE(c.all_but_one_in(1000));
    CHECK(c.amount(5, 100) == 0);
    CHECK(c.made() == choices::list{0, 0, 0, 0, 0});
  }
}

TEST_CASE("recorded numbers that are out of bounds are reduced to fit") {
  choices c = choices::replayed({12, 7, 3, 2});
  CHECK(c.below(10) == 2);
  CHECK(c.weighted({1, 1}) == 1);
  CHECK(c.one_in(100));
  CHECK(c.below(1) == 0);
  CHECK(c.made() == choices::list{2, 1, 1, 0});
}

TEST_CASE("a number takes as many bytes as its bound needs") {
  choices c = choices::read({1, 2, 3, 4, 5, 6});
  CHECK(c.below(1) == 0);
  CHECK(c.below(256) == 1);
  CHECK(c.below(257) == (0x0203) % 257);
  CHECK(c.below(1 << 24) == 0x040506);
  CHECK(c.below(256) == 0);
}

TEST_CASE("choices stay within their bounds, reach them, and follow their weights") {
  choices c = choices::drawn(3);
  std::vector<int> seen(4), weighted(3);
  int rare = 0, zeros = 0, large = 0;
  for (int i = 0; i != 10'000; ++i) {
    ++seen.at(c.below(4));
    ++weighted.at(c.weighted({1, 0, 9}));
    rare += c.one_in(50);
    const std::uint64_t amount = c.amount(1000, 1'000'000);
    REQUIRE(amount < 1'000'000);
    zeros += amount == 0;
    large += amount >= 1000;
  }
  for (const int n : seen) CHECK(n > 2000);
  CHECK(weighted[1] == 0);
  CHECK(weighted[0] > 500);
  CHECK(weighted[0] < 2000);
  CHECK(rare > 100);
  CHECK(rare < 400);
  CHECK(zeros > 500);
  CHECK(large > 50);
  CHECK(large < 1000);
}

TEST_CASE("the weight of the simplest choice never becomes 0, others may") {
  bool vanished = false;
  for (std::uint64_t seed = 0; seed != 100; ++seed) {
    const auto varied = choices::drawn(seed).varied({1, 5});
    CHECK(varied[0] > 0);
    vanished |= varied[1] == 0;
  }
  CHECK(vanished);
  CHECK(choices::replayed({}).varied({1, 5}) == choices::weights{1, 5});
}

}  // namespace model_choices
