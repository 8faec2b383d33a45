// A snapshot and a picture of a wheel, with small, different numbers.
#pragma once

#include <rondo/manual_timer.hpp>

#include "cache_refresh/snapshot.hpp"

namespace cache_refresh::test {

inline snapshot small_snapshot() {
  using namespace std::chrono_literals;
  snapshot now;
  now.origin = "items.db, an SQLite database";
  now.mode = "refresh-ahead";
  now.elapsed = 1500ms;
  now.keys = {.fresh = 7, .stale = 2, .empty = 1, .failing = 4};
  now.cache = {.hits = 30,
               .stale_hits = 5,
               .misses = 6,
               .loads = 20,
               .loaded = 9,
               .confirmed = 8,
               .failed = 3,
               .unread_loads = 11,
               .late_answers = 12,
               .forgotten = 13,
               .in_progress = 14,
               .waiting = 15,
               .failed_in_a_row = 9};
  now.failing_for = 4s;
  now.error = current_error{"no such item", 40s};
  now.served_for = 25s;
  now.unserved = 16;
  now.edits = 17;
  now.reads = {.buckets = {{1us, 3}, {2us, 4}, {50s, 1}, {51s, 2}},
               .count = 10,
               .sum = 160s,
               .p50 = 2us,
               .p99 = 51s,
               .max = 51s};
  now.timer.pending = 18;
  now.timer.scheduled = 19;
  now.timer.wakeups = 21;
  return now;
}

inline wheel_picture small_wheel() {
  using namespace std::chrono_literals;
  wheel_picture wheel;
  wheel.tick = 20ms;
  wheel.now = 9;
  wheel.this_turn = {1, 0, 2, 0};
  wheel.later = {0, 0, 0, 3};
  wheel.next = {{"ada", 500ms}};
  wheel.landings = {{41, "bob", 2, false, 2ms}, {42, "\xff", 3, true, 3ms}};  // a key need not be UTF-8
  return wheel;
}

// The statistics of a timer that ran one task 3 ms late and one on time.
inline rondo::statistics two_runs() {
  using namespace std::chrono_literals;
  rondo::manual_timer timer({.tick = 1ms});
  timer.schedule_after(1ms, [] {});
  timer.advance(1ms);
  timer.schedule_at(timer.now() - 3ms, [] {});
  timer.advance(0ms);
  return timer.stats();
}

}  // namespace cache_refresh::test
