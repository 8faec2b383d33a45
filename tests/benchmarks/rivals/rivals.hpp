// The contenders in the benchmarks of the wheel. Each has its own file and is listed in wheel.cpp.
#pragma once

#include <variant>

#include "measure.hpp"
#include "wheel_workloads.hpp"

struct rival {
  const char* name;
  measure::sample (*run)(
      const wheel_workload&);  // runs the complete workload, which itself calls nothing through a pointer
};

template <class Timers>
measure::sample run_with(const wheel_workload& workload) {
  return std::visit([](const auto& w) { return w.template run<Timers>(); }, workload);
}

extern const rival rondo_wheel;
extern const rival plain_arrays;  // for delays of one turn at most
extern const rival multimap;
extern const rival lazy_priority_queue;
extern const rival fibonacci_heap;
extern const rival libev;
extern const rival libevent;
extern const rival libuv;
extern const rival asio;
