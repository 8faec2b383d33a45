// Runs a few threads through all their interleavings.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rondo/time.hpp>

#include "interleavings/operation.hpp"

namespace rondo::test {

/// What is explored; made anew for each schedule. What the threads do, and what they see, must follow from the
/// order of their steps alone.
struct scenario {
  struct thread {
    std::string name;
    std::function<void()> body;
  };
  std::vector<thread> threads;
  std::function<void()> check = [] {};  // when all have ended
};

struct exploration {
  std::size_t schedules = 0;  // that were run, but for those that were found to be one seen before
  std::size_t repeated = 0;   // those
  std::string failure;        // of the first schedule that failed, with its steps; empty: none did
};

/// Runs the scenario in every interleaving, until one fails: an expect() does, or nobody can go on though not
/// all have ended, which is a deadlock or a lost wake-up, or there is no end to it.
///
/// The threads are real ones, as the library knows its threads, but one of them goes on at a time. It is
/// stopped before each step: each use of the locks, atomics and conditions of `explored`. (Letting go of a lock
/// is none, as nothing can become impossible by its coming at once.) What happens between two steps is seen by
/// the thread alone, or under a lock.
///
/// The memory is sequentially consistent, whatever order is asked for: weaker ones are the business of the
/// thread sanitizer. Conditions do not wake up without a cause, and compare_exchange_weak does not fail without
/// one: so whoever counts upon that is found out.
///
/// Time is virtual, and begins at 0. It passes when a thread makes it pass, which is a step of its own, or
/// else when nobody can go on: then it is what is waited for first. So a lost wake-up is a deadlock, or a run
/// that comes too late.
///
/// `preemptions`: only those schedules in which a thread that could go on has to wait at most so often.
exploration explore(const std::function<scenario()>& make, std::optional<std::size_t> preemptions = {});

/// Called by the threads, or by check(): the schedule fails unless `good`.
void expect(bool good, const char* what);

// What the locks, atomics and conditions ask for. Outside of a scenario's threads all of them do nothing.

/// Waits until it is the calling thread's turn to take this step, and `possible`, if it is given, says so; that
/// may be because the time `until` has come, for which somebody waits then.
void await_turn(const operation&, const std::function<bool()>& possible = {},
                std::optional<time_point> until = {});
/// What the step in progress has read or written, for who reads its schedule.
void note(long long value);
/// The step in progress has let go of a lock.
void note_released(const void* lock);
/// It makes that thread, which waits for it, go on.
void note_woke(std::size_t thread);
/// Which of the scenario's threads this is, or nobody.
std::size_t this_thread() noexcept;

/// The scenario's time. Reading and moving it are steps.
namespace virtual_time {

time_point now();
void move_to(time_point);

// For those who wait.
bool has_come(time_point) noexcept;
access reading() noexcept;

}  // namespace virtual_time

}  // namespace rondo::test
