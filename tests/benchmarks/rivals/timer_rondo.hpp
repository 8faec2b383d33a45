// rondo::timer with the interface that the benchmarks use: see timer_workloads.hpp.
#pragma once

#include <rondo/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

template <class OnFire>
class rondo_timers {
 public:
  rondo_timers(std::size_t timers, OnFire on_fire,
               std::chrono::microseconds tick = std::chrono::milliseconds(1))
      : ids_(timers), on_fire_(on_fire), timer_({.tick = tick}) {}

  void set(std::size_t which, std::chrono::milliseconds delay) {
    ids_[which] = timer_.schedule_after(delay, [this, which] { on_fire_(which); });
  }
  void cancel(std::size_t which) { timer_.cancel(ids_[which]); }
  void reschedule(std::size_t which, std::chrono::milliseconds delay) {
    timer_.reschedule_after(ids_[which], delay);
  }
  std::uint64_t pending() const { return timer_.stats().pending; }

 private:
  std::vector<rondo::timer_id> ids_;
  OnFire on_fire_;
  rondo::timer timer_;
};

template <class OnFire>
class fine_rondo_timers : public rondo_timers<OnFire> {
 public:
  fine_rondo_timers(std::size_t timers, OnFire on_fire)
      : rondo_timers<OnFire>(timers, on_fire, std::chrono::microseconds(10)) {}
};
