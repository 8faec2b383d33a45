// A std::multimap under a mutex.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "rivals/timer_by_hand.hpp"

class multimap_queue {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit multimap_queue(std::size_t timers) : places_(timers, queue_.end()) {}

  bool add(std::size_t which, time_point due, std::function<void()> work) {
    places_[which] = queue_.emplace(due, timer{which, std::move(work)});
    return places_[which] == queue_.begin();
  }
  void erase(std::size_t which) {
    if (places_[which] == queue_.end()) return;
    queue_.erase(places_[which]);
    places_[which] = queue_.end();
  }

  bool empty() const { return queue_.empty(); }
  time_point first_due() const { return queue_.begin()->first; }
  std::function<void()> take_first() {
    timer first = std::move(queue_.begin()->second);
    erase(first.which);
    return std::move(first.work);
  }

 private:
  struct timer {
    std::size_t which;
    std::function<void()> work;
  };
  std::multimap<time_point, timer> queue_;
  std::vector<std::multimap<time_point, timer>::iterator> places_;  // end() for timers that are not pending
};

template <class OnFire>
using multimap_timers = timers_by_hand<multimap_queue, OnFire>;
