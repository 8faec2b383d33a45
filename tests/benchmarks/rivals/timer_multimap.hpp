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

  explicit multimap_queue(std::size_t timers) : places_(timers) {}

  bool add(std::size_t which, time_point due, std::function<void()> work) {
    places_[which] = queue_.emplace(due, std::move(work));
    return places_[which] == queue_.begin();
  }
  void erase(std::size_t which) { queue_.erase(places_[which]); }

  bool empty() const { return queue_.empty(); }
  time_point first_due() const { return queue_.begin()->first; }
  std::function<void()> take_first() {
    std::function<void()> work = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    return work;
  }

 private:
  std::multimap<time_point, std::function<void()>> queue_;
  std::vector<std::multimap<time_point, std::function<void()>>::iterator> places_;
};

template <class OnFire>
using multimap_timers = timers_by_hand<multimap_queue, OnFire>;
