// Checks that a scheduler (here a manual_timer) never allocates in the long run, for callables of 48 bytes. Exits with
// status 1 if it does. Argument: --small runs for a moment only, as a test.
#include <rondo/manual_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "failing_new.hpp"
#include "measure.hpp"

namespace {

using std::chrono::milliseconds;

std::uint64_t fired = 0;

/// 48 bytes of capture.
auto task_of(std::size_t which) {
  return [capture = std::array<std::uint64_t, 6>{which}] { fired += capture[0]; };
}

struct steady_state {
  rondo::manual_timer timer;
  std::vector<rondo::timer_id> ids;
  measure::random random{9};

  explicit steady_state(std::size_t pending) {
    for (std::size_t i = 0; i != pending; ++i) ids.push_back(set_first(i));
  }
  // Each tick always has the same timers. With random ticks, one would occasionally have more timers than ever before,
  // and its array would grow.
  static constexpr std::size_t turn = 512;
  rondo::timer_id set(std::size_t which, std::size_t ticks) {
    return timer.schedule_after(milliseconds(ticks), task_of(which));
  }
  rondo::timer_id set_first(std::size_t which) { return set(which, 1 + which % turn); }
  void cancel_and_set() {
    const std::size_t which = random() % ids.size();
    timer.cancel(ids[which]);
    ids[which] = set_first(which);
  }
  /// Re-arms what fires, so that the number of pending timers stays the same.
  void fire_and_set() {
    timer.advance(milliseconds(1));
    for (std::size_t i = 0; i != ids.size(); ++i)
      if (!timer.pending(ids[i])) ids[i] = set(i, turn);
  }
};

/// Warms up first, so that everything that grows has grown.
template <class Operation>
bool never_allocates(const char* what, std::size_t pending, int warm_up, int times, Operation operation) {
  steady_state state(pending);
  for (int i = 0; i != warm_up; ++i) (state.*operation)();
  const std::size_t before = rondo::test::allocations();
  for (int i = 0; i != times; ++i) (state.*operation)();
  const std::size_t count = rondo::test::allocations() - before;
  std::printf("%-32s %zu pending, %d times: %zu allocations\n", what, pending, times, count);
  return count == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string_view(argv[1]) == "--small";
  const std::size_t pending = small ? 1'000 : 10'000;
  const int pairs = small ? 100'000 : 1'000'000;
  const int ticks = small ? 2'000 : 10'000;
  bool right =
      never_allocates("cancel one and set another", pending, pairs, pairs, &steady_state::cancel_and_set);
  right &= never_allocates("fire a tick, set what fired", pending, ticks, ticks, &steady_state::fire_and_set);
  return right ? 0 : 1;
}
