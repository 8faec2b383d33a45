// Runs a few threads through all their interleavings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rondo/time.hpp>

#include "interleavings/operation.hpp"

namespace rondo::test {

/// What is explored. Each schedule gets a new one. What the threads do and see must depend only on the order of their
/// steps.
struct scenario {
  struct thread {
    std::string name;
    std::function<void()> body;
  };
  std::vector<thread> threads;
  std::function<void()> check = [] {};  // called when all threads have ended
};

struct exploration {
  std::size_t schedules = 0;  // number of schedules run, without repeated ones
  std::size_t repeated = 0;   // number of schedules found to be equivalent to an earlier one
  std::string failure;        // of the first schedule that failed, with its steps; empty if none failed
};

/// Runs the scenario in every interleaving until one fails. An interleaving fails if an expect() fails, if no thread
/// can continue although not all have ended (a deadlock or a lost wake-up), or if it does not end.
///
/// The threads are real threads, because the library identifies its threads, but only one runs at a time. It is stopped
/// before each step: each use of the locks, atomics and conditions of `explored`. (Releasing a lock is not a step:
/// doing it at once cannot make anything impossible.) What happens between two steps must be visible only to the
/// thread, or guarded by a lock.
///
/// `stale` is how often a load may return another value than the latest, or a store take its place before others, as far
/// as the requested memory orders allow it: see memory.hpp. If it is 0, memory is sequentially consistent. Otherwise the
/// library's plain data is watched, too: a schedule fails if two threads may use it at the same time, and one of them
/// writes. So do atomics that are not `explored`, but these are no steps.
///
/// Conditions never wake up spuriously, and compare_exchange_weak never fails spuriously, so code that relies on that
/// is detected.
///
/// Time is virtual and begins at 0. It passes when a thread moves it, which is a separate step, or when no thread can
/// continue. In that case it moves to the earliest moment that a thread waits for. So a lost wake-up shows as a
/// deadlock or as a late run.
///
/// `preemptions` restricts the exploration to schedules in which threads that could continue have to wait at most that
/// often.
exploration explore(const std::function<scenario()>& make, std::optional<std::size_t> preemptions = {},
                    std::size_t stale = 0);

/// Called by the threads, or by check(): the schedule fails unless `good`.
void expect(bool good, const char* what);

/// Whether a scenario is being explored.
bool is_exploring() noexcept;

// Called by the locks, atomics and conditions. Outside of a scenario's threads, all of these do nothing.

/// Waits until it is the calling thread's turn to take this step, and `possible`, if given, returns true. That may be
/// because the time `until` has come; the thread waits for that time.
void await_turn(const operation&, const std::function<bool()>& possible = {},
                std::optional<time_point> until = {});
/// Notes what the step in progress has read or written, for readers of the schedule.
void note(long long value);
/// Notes that the step in progress has released a lock.
void note_released(const void* lock);
/// Notes that the step in progress lets that thread, which waits for it, continue.
void note_woke(std::size_t thread);
/// Which of the scenario's threads this is, or nobody.
std::size_t this_thread() noexcept;

/// While one lives, nothing that the calling thread does in memory is watched, but that it allocates some: what belongs to
/// the explorer or to the tests' own records, which real threads would not share.
class unwatched {
 public:
  unwatched() noexcept;
  ~unwatched();
  unwatched(const unwatched&) = delete;
  unwatched& operator=(const unwatched&) = delete;
};

/// What one thread does before give() happens before what another does after take(): tests hand timers and jobs from thread
/// to thread, which their users would not do without an order.
class handing_over {
 public:
  void give();
  void take() const;
};

/// Whether the calling thread is one of a scenario's.
bool is_step() noexcept;
/// Whether it is, and the scenario is explored with stale values. Otherwise memory has no history, and nothing is watched.
bool is_weak_step() noexcept;

// Called by the code that the compiler has instrumented.

// Whether a scenario is explored with stale values. It is asked before each access, so it is no call.
extern bool memory_is_weak;
bool this_thread_is_watched() noexcept;
inline bool is_watched() noexcept { return memory_is_weak && this_thread_is_watched(); }
/// Whether changes of the standard library's atomics, which count references, are steps. Otherwise they belong to the step in
/// progress, and what they order is never seen to be ordered by something else.
inline bool updates_are_steps = false;
/// While one lives, they are.
struct with_updates_as_steps {
  with_updates_as_steps() { updates_are_steps = true; }
  ~with_updates_as_steps() { updates_are_steps = false; }
  with_updates_as_steps(const with_updates_as_steps&) = delete;
  with_updates_as_steps& operator=(const with_updates_as_steps&) = delete;
};

/// An access that is not atomic. The schedule fails if it may occur at the same time as one by another thread, and one of
/// them writes. Precondition: is_watched().
void watch_plain(const void* begin, std::size_t bytes, bool writes, const void* code) noexcept;
/// An atomic access. The schedule fails if it may occur at the same time as one that is not. Precondition: is_weak_step().
void watch_atomic(const void* begin, std::size_t bytes, bool writes, const void* code) noexcept;
/// Memory has been allocated, or is about to be released.
///
/// The model is an allocator that hands out no address twice. If a real one does, C++ orders what was done in the block
/// before what its next owner does ([new.delete.dataraces]). But the program cannot rely on that, so it must not hide a
/// fault: here, the one orders nothing, and is no race with the other, either. Until the address is handed out again, to
/// release a block is to write to it: whoever uses it without an order has a race.
void watch_block(const void* begin, std::size_t bytes, bool released) noexcept;

/// What the step in progress does with an atomic object or a lock. `latest` is the object's last value.
/// Precondition: is_weak_step().
namespace step_in_memory {

using word = std::uint64_t;
using order = std::memory_order;

word load(const void* object, word latest, order);
void store(const void* object, word& latest, word value, order);
word update(const void* object, word& latest, const std::function<word(word)>& change, order);
bool compare_exchange(const void* object, word& latest, word& expected, word value, order success,
                      order failure);

// These may be called at any time.
void fence(order);
void acquire_lock(const void* lock);
void release_lock(const void* lock);
/// An object or a lock begins to exist at this address.
void begin(const void* object) noexcept;

}  // namespace step_in_memory

/// The scenario's time. Reading and moving it are steps.
namespace virtual_time {

time_point now();
void move_to(time_point);

// For threads that wait.
bool has_come(time_point) noexcept;
access reading() noexcept;

}  // namespace virtual_time

}  // namespace rondo::test
