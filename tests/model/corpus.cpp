// Replays what the fuzzer has found, which is in corpus.txt: see fuzz_programs.cpp.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "model/failing_program.hpp"

namespace model_corpus {

using namespace rondo::test;

// The bytes whose hexadecimal digits are in `line`.
std::vector<std::uint8_t> bytes_of(const std::string& line) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at != line.size(); at += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(at, 2), nullptr, 16)));
  return bytes;
}

TEST_CASE("the programs that the fuzzer has found run as the model says") {
  std::ifstream corpus(RONDO_TESTS "/model/corpus.txt");
  int programs = 0;
  for (std::string line; std::getline(corpus, line);) {
    ++programs;
    const outcome o = run_program(choices::read(bytes_of(line)), fuzzed_steps);
    if (!o.wrong.empty())
      FAIL_CHECK("line " << programs << ": " << o.wrong << "\nAs a test:\n\n" << as_test(o.made));
  }
  CHECK(programs >= 30);
}

}  // namespace model_corpus
