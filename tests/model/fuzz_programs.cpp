// Random programs whose choices come from a fuzzer: libFuzzer looks for programs that reach new code.
//
//   CXX=clang++ meson setup build-fuzz -Doptimization=1 -Dcpp_args=-fsanitize=fuzzer-no-link
//   meson compile -C build-fuzz fuzz_programs          # nothing else links in this build
//   mkdir found corpus && awk '{ print | "xxd -r -p > corpus/" NR }' tests/model/corpus.txt   # a file of each line
//   build-fuzz/tests/fuzz_programs found corpus
//
// It stops at the first program that goes wrong, prints it as a test, and keeps it as a file crash-…. To see what a
// program does before it crashes, run RONDO_TEST_TRACE=1 fuzz_programs crash-…. The ordinary tests replay the corpus,
// which has only the few programs needed to reach all the code that was found:
//
//   mkdir few && build-fuzz/tests/fuzz_programs -set_cover_merge=1 -use_counters=0 few found corpus
//   for file in few/*; do xxd -p "$file" | tr -d '\n'; echo; done | sort > tests/model/corpus.txt
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "model/failing_program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rondo::test;
  static std::ostream* const trace = std::getenv("RONDO_TEST_TRACE") != nullptr ? &std::cerr : nullptr;
  const outcome o = run_program(choices::read({data, data + size}), fuzzed_steps, trace);
  if (o.wrong.empty()) return 0;
  std::cerr << o.wrong << "\nAs a test:\n\n" << as_test(o.made);
  std::abort();
}
