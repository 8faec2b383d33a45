// Several threads schedule near and far timers while time passes. Timers that are redistributed meanwhile are neither
// lost nor early, and keep their order.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <thread>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "threads/patience.hpp"

namespace threads_far_timers {

using namespace rondo;
using namespace rondo::test;

/// One thread's timers. That thread schedules, cancels and moves them; the thread that lets time pass runs them.
class producer {
 public:
  producer(manual_timer& time, unsigned state) : time_(time), state_(state), timers_(count) {}

  void produce() {
    for (std::size_t i = 0; i != count; ++i) {
      // In bursts, so that half a minute passes during the test.
      while (time_.now() < time_point(i / 100 * 300ms)) std::this_thread::yield();
      scheduled(i, time_.schedule_at(due_, [this, i](const firing& f) { run(i, f); }));
      const std::size_t other = random() % (i + 1);
      if (random() % 4 == 0)
        timers_[other].cancelled |= time_.cancel(timers_[other].id) == cancel_result::cancelled;
      choose_due();
      if (random() % 2 == 0 && time_.reschedule_at(timers_[other].id, due_)) placed(other);
    }
  }

  /// From now on no thread schedules, and no pending timer is overdue.
  void be_on_time() { on_time_ = true; }

  /// To be called when all timers have run.
  void check() const {
    std::size_t lost_or_twice = 0, elsewhen = 0, disordered = 0;
    for (const one& t : timers_) lost_or_twice += t.runs != (t.cancelled ? 0 : 1);
    std::map<time_point, std::size_t> last;  // by deadline
    for (const run_of& r : runs_) {
      elsewhen += r.due != timers_[r.number].due;
      std::size_t& before = last[r.due];
      disordered += timers_[r.number].order < before;
      before = timers_[r.number].order;
    }
    CHECK(lost_or_twice == 0);
    CHECK(elsewhen == 0);
    CHECK(disordered == 0);
    CHECK(early_ == 0);
    CHECK(late_ == 0);
    // There was an order to keep. (Usually half of them share a deadline; fewer if the producers seldom get a processor.)
    CHECK(last.size() < runs_.size() / 10 * 9);
  }

 private:
  static constexpr std::size_t count = 10'000;

  struct one {
    timer_id id;
    time_point due;
    std::size_t order = 0;  // number of the last call that placed it
    bool cancelled = false;
    int runs = 0;  // used by the thread that runs the timers, like runs_, early_ and late_
  };
  struct run_of {
    std::size_t number;
    time_point due;
  };

  unsigned random() {
    state_ = state_ * 1664525U + 1013904223U;
    return state_ >> 8;
  }
  /// Up to 30 s from now, half of the deadlines within 64 ms. On a grid, so that many share a tick.
  void choose_due() {
    const bool near = random() % 2 == 0;
    const auto grid = near ? 16ms : 100ms;
    const auto delay = near ? 1ms + random() % 64 * 1ms : 1ms + random() % 300 * 100ms;
    const auto from_start =
        std::chrono::ceil<std::chrono::milliseconds>(time_.now() + delay).time_since_epoch();
    due_ = time_point((from_start + grid - 1ms) / grid * grid);
  }
  void scheduled(std::size_t i, timer_id id) {
    timers_[i].id = id;
    placed(i);
  }
  void placed(std::size_t i) {
    timers_[i].due = due_;
    timers_[i].order = ++calls_;
  }
  void run(std::size_t i, const firing& f) {
    early_ += time_.now() < f.due;
    late_ += on_time_ && time_.now() >= f.due + 1ms;
    ++timers_[i].runs;
    runs_.push_back({i, f.due});
  }

  manual_timer& time_;
  unsigned state_;
  time_point due_{1ms};
  std::size_t calls_ = 0;
  std::vector<one> timers_;
  std::vector<run_of> runs_;
  bool on_time_ = false;
  int early_ = 0, late_ = 0;
};

void check_while_time_passes(std::size_t buckets, rondo::duration step) {
  manual_timer time(options{.buckets = buckets});
  producer first(time, 1), second(time, 2);
  std::atomic<int> producing{2};
  std::vector<std::thread> threads;
  for (producer* p : {&first, &second})
    threads.emplace_back([&, p] {
      p->produce();
      --producing;
    });
  while (producing != 0) time.advance(step);
  for (std::thread& t : threads) t.join();
  time.advance(0s);
  for (producer* p : {&first, &second}) p->be_on_time();
  time.advance(31s);
  first.check();
  second.check();
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("two threads' timers of 1 ms to 30 s keep their order while time passes tick by tick") {
  check_while_time_passes(512, 1ms);
}

TEST_CASE(
    "two threads' timers of 1 ms to 30 s keep their order while time passes in steps beyond the window") {
  check_while_time_passes(8, 50ms);
}

}  // namespace threads_far_timers
