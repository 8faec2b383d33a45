// Runs random programs, and turns those that fail into tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>

#include "model/choices.hpp"
#include "model/random_program.hpp"

namespace rondo::test {

struct outcome {
  std::string wrong;  // empty if nothing
  choices::list made;
  std::uint64_t looks;  // the cost of the program: see scheduler_model
};

/// See random_program.
outcome run_program(choices, std::size_t steps, std::ostream* trace = nullptr, limits = {});

/// A fuzzer's programs end where its bytes do, and rarely by themselves.
constexpr std::size_t fuzzed_steps = 256;

/// What goes wrong in the program of these choices, or "" if nothing does.
inline std::string wrong_in(choices::list made) {
  return run_program(choices::replayed(std::move(made)), 1).wrong;
}

/// The simplest program that could be found to fail, as a test for random_programs.cpp.
std::string as_test(choices::list failing, std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace rondo::test
