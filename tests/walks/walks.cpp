// What a few calls pass through, from the user down to a slot and back: see run. Compiled with -finstrument-functions.
#include <rondo/timer.hpp>
#include <rondo/wheel.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>

#include <pthread.h>

namespace {

std::array<void*, 100'000> entered;
std::atomic<std::size_t> calls{0};
std::atomic<bool> tracing{false};
std::atomic<std::size_t> mutexes{0};

}  // namespace

extern "C" {

[[gnu::no_instrument_function]] void __cyg_profile_func_enter(void* function, void*) {
  if (tracing.load(std::memory_order_relaxed)) entered.at(calls.fetch_add(1)) = function;
}
[[gnu::no_instrument_function]] void __cyg_profile_func_exit(void*, void*) {}

int __real_pthread_mutex_lock(pthread_mutex_t*);
/// The linker takes it for each call of pthread_mutex_lock() in this program.
[[gnu::no_instrument_function]] int __wrap_pthread_mutex_lock(pthread_mutex_t* m) {
  if (tracing.load(std::memory_order_relaxed)) ++mutexes;
  return __real_pthread_mutex_lock(m);
}
}

namespace {

using namespace std::chrono_literals;

/// Prints the functions that are entered, on any thread, while act() runs, and how many mutexes are locked. (run leaves out
/// the functions of this file, and finds the locks that are Rondo's own.)
template <class Act>
void walk(const char* name, Act&& act) {
  calls = 0;
  mutexes = 0;
  tracing = true;
  act();
  tracing = false;
  std::printf("%s\n%zu mutexes\n", name, mutexes.load());
  for (std::size_t i = 0; i != calls; ++i) std::printf("%p\n", entered[i]);
}

struct node : rondo::wheel_node {
  int id = 0;
};

void fired(node&) {}

/// A wheel of 512 buckets with a block of 64 ticks, in which each list and bucket has room for one more node.
void bare_wheel() {
  rondo::wheel<node> w;
  node before, near, far, with_far;
  w.schedule(before, 1);
  w.advance(1, fired);
  w.schedule(with_far, 5000);
  walk("bare wheel, set far", [&] { w.schedule(far, 5000); });
  walk("bare wheel, cancel", [&] { w.cancel(far); });
  w.schedule(near, 100);
  walk("bare wheel, fire near", [&] { w.advance(100, fired); });
  walk("bare wheel, fire far", [&] { w.advance(5000, fired); });
}

/// A timer whose driver sleeps. Firing is what happens until it sleeps again.
void timer() {
  rondo::timer t;
  std::atomic<int> runs{0};
  const auto task = [&runs] { ++runs; };
  const auto until = [&](int expected) {
    while (runs != expected) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
  };
  t.schedule_after(5ms, task);
  until(1);
  const auto far = t.now() + 1h;
  t.schedule_at(far, task);
  t.cancel(t.schedule_at(far, task));  // so that there is a free record
  std::this_thread::sleep_for(50ms);
  rondo::timer_id id;
  walk("rondo::timer, set far", [&] { id = t.schedule_at(far, task); });
  walk("rondo::timer, cancel", [&] { t.cancel(id); });
  t.schedule_after(300ms, task);
  std::this_thread::sleep_for(50ms);
  walk("rondo::timer, fire near", [&] { until(2); });
  t.schedule_after(900ms, task);
  std::this_thread::sleep_for(50ms);
  walk("rondo::timer, fire far", [&] { until(3); });
}

}  // namespace

int main() {
  bare_wheel();
  timer();
}
