// More threads than can have their own shards, and threads that come and go.
#include <cstddef>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace threads_many_threads {

using namespace rondo;
using namespace rondo::test;

// MinGW may have freed the variable before it destroys it.
#ifndef __MINGW32__

TEST_CASE("a thread may use a scheduler until the last of its thread_local variables is destroyed") {
  timer t;
  struct late_user {
    timer* used = nullptr;
    ~late_user() {
      if (used != nullptr) used->cancel(used->schedule_after(1h, [] {}));
    }
  };
  for (int i = 0; i != 3; ++i) {
    std::thread([&] {
      thread_local late_user late;  // constructed first, so destroyed after what the call creates
      late.used = &t;
      t.cancel(t.schedule_after(1h, [] {}));
    }).join();
  }
  CHECK(t.stats().cancelled == 6);
  CHECK(t.pending() == 0);
}

#endif

TEST_CASE("no timer and no count is lost between a hundred threads and those that reuse their numbers") {
  timer t;
  constexpr std::size_t each = 200;
  for (int round = 0; round != 3; ++round) {
    on_threads(100, [&](std::size_t) {
      std::vector<timer_id> ids;
      for (std::size_t i = 0; i != each; ++i) ids.push_back(t.schedule_after(1h, [] {}));
      for (std::size_t i = 0; i != each; i += 2) t.cancel(ids[i]);
    });
  }
  const statistics s = t.stats();
  CHECK(s.scheduled == 3 * 100 * each);
  CHECK(s.cancelled == s.scheduled / 2);
  CHECK(s.pending == s.scheduled / 2);
  CHECK(t.stop().size() == s.pending);
}

}  // namespace threads_many_threads
