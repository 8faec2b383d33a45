// Litmus tests: a few threads of a few accesses, and what they can read.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "interleavings/explored.hpp"
#include "interleavings/explorer.hpp"

namespace rondo::test::litmus {

using order = std::memory_order;
inline constexpr order relaxed = order::relaxed;
inline constexpr order acquire = order::acquire;
inline constexpr order release = order::release;
inline constexpr order acq_rel = order::acq_rel;
inline constexpr order seq_cst = order::seq_cst;

/// Three atomic objects, all 0, a lock, and what the threads have read.
struct world {
  explored_atomic<int> x, y, z;
  explored_mutex mutex;
  std::array<int, 4> r{};
};

using thread = std::function<void(world&)>;

/// What the test shows at the end: digits of what was read, or of the last values.
using shown = std::function<std::string(const world&)>;

inline std::string digits(std::initializer_list<int> numbers) {
  std::string all;
  for (const int n : numbers) all += std::to_string(n);
  return all;
}

/// The first registers.
inline shown registers(std::size_t count) {
  return [count](const world& w) {
    std::string all;
    for (std::size_t i = 0; i != count; ++i) all += std::to_string(w.r[i]);
    return all;
  };
}

using outcomes = std::set<std::string>;

inline constexpr std::size_t as_often_as_possible = 100;

/// All that can be shown at the end.
inline outcomes outcomes_of(const std::vector<thread>& threads, const shown& show,
                            std::size_t stale = as_often_as_possible) {
  outcomes all;
  const exploration e = explore(
      [&] {
        const auto w = std::make_shared<world>();
        scenario s;
        for (const thread& t : threads) s.threads.push_back({"thread", [w, t] { t(*w); }});
        s.check = [&all, &show, w] { all.insert(show(*w)); };
        return s;
      },
      {}, stale);
  CHECK(e.failure == "");
  return all;
}

/// Every string of a 0 or 1 for each register, except for these.
inline outcomes all_but(std::size_t count, const outcomes& forbidden) {
  outcomes all;
  for (unsigned bits = 0; bits != 1U << count; ++bits) {
    std::string one;
    for (std::size_t i = 0; i != count; ++i) one += (bits >> i & 1U) != 0 ? '1' : '0';
    if (!forbidden.contains(one)) all.insert(one);
  }
  return all;
}

/// Each function that makes a thread is an access, or several in turn.
inline thread in_turn(std::vector<thread> accesses) {
  return [accesses = std::move(accesses)](world& w) {
    for (const thread& access : accesses) access(w);
  };
}

using variable = explored_atomic<int> world::*;

inline thread store(variable v, int value, order o) {
  return [=](world& w) { (w.*v).store(value, o); };
}
inline thread load(std::size_t into, variable v, order o) {
  return [=](world& w) { w.r[into] = (w.*v).load(o); };
}
inline thread add(variable v, int more, order o) {
  return [=](world& w) { (w.*v).fetch_add(more, o); };
}
inline thread add(std::size_t into, variable v, int more, order o) {
  return [=](world& w) { w.r[into] = (w.*v).fetch_add(more, o); };
}
inline thread fence(order o) {
  return [=](world&) { explored_fence(o); };
}
inline thread locked(thread access) {
  return [access = std::move(access)](world& w) {
    const std::lock_guard hold(w.mutex);
    access(w);
  };
}

}  // namespace rondo::test::litmus
