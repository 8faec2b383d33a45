// The timers of a scene, by number.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include <rondo/timer_id.hpp>

#include "interleavings/explored.hpp"
#include "interleavings/explorer.hpp"

namespace rondo::test {

/// What a scene knows about one of its timers.
struct numbered_timer {
  timer_id id;
  handing_over given;  // the id
  std::weak_ptr<int> callable;
  explored_atomic<int> running;
  int runs = 0;
};

/// Timers in the order of add(). A test's records are its own: all threads write them, one at a time, so nothing here is
/// watched.
template <class Timer>
class numbered_timers {
 public:
  Timer& add() {
    const unwatched here;
    return all_.emplace_back();
  }
  Timer& operator[](std::size_t i) {
    const unwatched here;
    return all_[i];
  }
  std::size_t count() const {
    const unwatched here;
    return all_.size();
  }
  /// The id of timer `i`, or that of no timer if it is not set yet. It is handed from thread to thread in an order.
  timer_id id(std::size_t i) const {
    const unwatched here;
    all_[i].given.take();
    return all_[i].id;
  }
  static void set_id(Timer& t, timer_id id) {
    const unwatched here;
    t.id = id;
    t.given.give();
  }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::deque<Timer> all_;
};

}  // namespace rondo::test
