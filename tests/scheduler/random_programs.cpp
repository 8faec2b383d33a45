// Random programs on virtual time, compared step by step with the model.
#include "scheduler/random_program.hpp"

namespace {

using namespace rondo::test;

TEST_CASE("random programs run as the model says") {
  for (const std::uint64_t seed : seeds("random programs", 150)) {
    CAPTURE(seed);
    CHECK(random_program(seed, false).run(150) == "");
  }
}

TEST_CASE("random programs with an executor run as the model says") {
  for (const std::uint64_t seed : seeds("random programs with an executor", 150)) {
    CAPTURE(seed);
    CHECK(random_program(seed, true).run(200) == "");
  }
}

}  // namespace
