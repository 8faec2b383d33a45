#include "common/text.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace cache_refresh_texts {

using namespace std::chrono_literals;
using common::readable;

TEST_CASE("texts: a duration has three digits or, from 1000 s on, as many as whole seconds take") {
  CHECK(readable(0ns) == "0 us");
  CHECK(readable(1250us) == "1.25 ms");
  CHECK(readable(12'540ms) == "12.5 s");
  CHECK(readable(1234s) == "1234 s");
  CHECK(readable(24h) == "86400 s");
}

TEST_CASE("texts: a duration that is rounded up to the next unit is given in that unit") {
  CHECK(readable(999'499ns) == "999 us");
  CHECK(readable(999'600ns) == "1 ms");
  CHECK(readable(999'600us) == "1 s");
  CHECK(readable(999'400ms) == "999 s");
  CHECK(readable(999'600ms) == "1000 s");
}

}  // namespace cache_refresh_texts
