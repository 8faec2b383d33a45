// Who takes part in the benchmarks of the wheel. Each lives in a file of its own and is named in wheel.cpp.
#pragma once

#include <variant>

#include "measure.hpp"
#include "wheel_workloads.hpp"

struct rival {
  const char* name;
  measure::sample (*run)(
      const wheel_workload&);  // all of the workload: nothing in it is called through a pointer
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
