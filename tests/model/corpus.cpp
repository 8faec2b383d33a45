// Replays what the fuzzer has found: see fuzz_programs.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/failing_program.hpp"

namespace model_corpus {

using namespace rondo::test;

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(RONDO_TEST_CORPUS)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("the programs that the fuzzer has found run as the model says") {
  const auto files = corpus();
  CHECK(files.size() >= 30);
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<std::uint8_t> bytes(std::istreambuf_iterator<char>(in), {});
    REQUIRE(in);
    const outcome o = run_program(choices::read(bytes), fuzzed_steps);
    if (!o.wrong.empty())
      FAIL_CHECK(file.filename().string() << ": " << o.wrong << "\nAs a test:\n\n" << as_test(o.made));
  }
}

}  // namespace model_corpus
