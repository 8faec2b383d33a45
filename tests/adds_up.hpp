// A sum that a scheduler promises.
#pragma once

#include <rondo/statistics.hpp>

namespace rondo::test {

/// Once nothing is running, each timer is pending or has ended in one way.
inline bool adds_up(const statistics& s) {
  return s.scheduled == s.pending + s.completed + s.cancelled + s.returned;
}

}  // namespace rondo::test
