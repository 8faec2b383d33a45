// A std::priority_queue under a mutex. Cancelling removes nothing from it: the entry of a cancelled timer is skipped
// when it reaches the top.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "rivals/timer_by_hand.hpp"

class lazy_heap_queue {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit lazy_heap_queue(std::size_t timers) : timers_(timers) {}

  bool add(std::size_t which, time_point due, std::function<void()> work) {
    timers_[which].work = std::move(work);
    heap_.push({due, which, timers_[which].version});
    return heap_.top().which == which;
  }
  void erase(std::size_t which) {
    ++timers_[which].version;
    timers_[which].work = nullptr;
  }

  bool empty() {
    while (!heap_.empty() && heap_.top().version != timers_[heap_.top().which].version) heap_.pop();
    return heap_.empty();
  }
  time_point first_due() const { return heap_.top().due; }
  std::function<void()> take_first() {
    timer& first = timers_[heap_.top().which];
    heap_.pop();
    ++first.version;
    return std::exchange(first.work, nullptr);
  }

 private:
  struct timer {
    std::uint64_t version = 0;
    std::function<void()> work;
  };
  struct entry {
    time_point due;
    std::size_t which;
    std::uint64_t version;
    bool operator<(const entry& other) const noexcept { return due > other.due; }
  };
  std::vector<timer> timers_;
  std::priority_queue<entry> heap_;
};

template <class OnFire>
using lazy_heap_timers = timers_by_hand<lazy_heap_queue, OnFire>;
