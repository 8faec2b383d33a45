// Many threads record at once: nothing is lost, and readings taken meanwhile are consistent.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "scheduler/run_meter.hpp"

namespace threads_histogram {

using namespace rondo;

using recorder = rondo::detail::histogram_recorder;

void record_many(recorder& r, int many) {
  for (int i = 0; i != many; ++i) {
    r.record(duration(i % 50));                       // values that all threads record
    r.record(duration(std::int64_t{1} << (i % 45)));  // their sum is less than the longest duration
  }
}

/// Whether the later reading includes the earlier one.
bool follows(const histogram& later, const histogram& earlier) {
  try {
    histogram since = later;
    since -= earlier;
    return since.count() == later.count() - earlier.count();
  } catch (const std::invalid_argument&) {
    return false;
  }
}

TEST_CASE("a histogram has everything that several threads record at once") {
  constexpr int many = 50'000;
  constexpr int threads = 4;
  recorder shared, alone;
  std::atomic<bool> over{false};
  std::vector<std::thread> recording;
  for (int t = 0; t != threads; ++t) recording.emplace_back([&] { record_many(shared, many); });
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    for (histogram last; !over;) {
      const histogram h = shared.snapshot();
      if (!follows(h, last) || h.min() > h.quantile(0.5) || h.quantile(0.5) > h.max()) ++wrong;
      last = h;
    }
  });
  for (std::thread& t : recording) t.join();
  over = true;
  reader.join();
  for (int t = 0; t != threads; ++t) record_many(alone, many);
  CHECK(wrong == 0);
  CHECK(shared.snapshot().count() == std::uint64_t{2} * many * threads);
  CHECK((shared.snapshot() == alone.snapshot()));
  CHECK(shared.snapshot().sum() == alone.snapshot().sum());
}

}  // namespace threads_histogram
