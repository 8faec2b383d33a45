// rondo::timer beside what a program without a timer library has: a map, a mutex and a condition variable.
// One or two threads set and cancel timers in real time while the driver thread runs.
#include <rondo/timer.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

class map_timer {
 public:
  using id = std::multimap<steady::time_point, std::function<void()>>::iterator;

  map_timer() : driver_([this] { drive(); }) {}
  ~map_timer() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    driver_.join();
  }

  id set(std::chrono::milliseconds delay, std::function<void()> work) {
    const auto due = steady::now() + delay;
    const std::lock_guard hold(mutex_);
    const id place = queue_.emplace(due, std::move(work));
    if (place == queue_.begin()) changed_.notify_one();
    return place;
  }

  /// Precondition: it has not fired. (A benchmark's delays are far longer than its run.)
  void cancel(id place) {
    const std::lock_guard hold(mutex_);
    queue_.erase(place);
  }

 private:
  void drive() {
    std::unique_lock hold(mutex_);
    while (!stopping_) {
      if (queue_.empty()) {
        changed_.wait(hold);
      } else if (queue_.begin()->first > steady::now()) {
        const auto due = queue_.begin()->first;  // a copy: while waiting the entry may go
        changed_.wait_until(hold, due);
      } else {
        const auto work = std::move(queue_.begin()->second);
        queue_.erase(queue_.begin());
        hold.unlock();
        work();
        hold.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<steady::time_point, std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread driver_;
};

class rondo_timer {
 public:
  using id = rondo::timer_id;
  id set(std::chrono::milliseconds delay, std::function<void()> work) {
    return timer_.schedule_after(delay, std::move(work));
  }
  void cancel(id place) { timer_.cancel(place); }

 private:
  rondo::timer timer_;
};

/// Each producer keeps as many timers pending, and time and again cancels one and sets another.
template <class Timer>
measure::sample produce(int producers, std::size_t pending, std::uint64_t pairs) {
  Timer timer;
  std::atomic<int> ready{0};
  std::atomic<std::uint64_t> sum{0};
  const auto delay = [](measure::random& random) {
    return std::chrono::milliseconds(60'000 + random.up_to(512));
  };
  std::vector<std::thread> threads;
  measure::clock::time_point start;
  for (int p = 0; p != producers; ++p) {
    threads.emplace_back([&, p] {
      measure::random random(static_cast<std::uint64_t>(p));
      std::vector<typename Timer::id> mine;
      for (std::size_t i = 0; i != pending; ++i) mine.push_back(timer.set(delay(random), [&sum] { ++sum; }));
      if (++ready == producers) start = measure::now();
      while (ready.load() < producers) std::this_thread::yield();
      std::uint64_t chosen = 0;
      for (std::uint64_t i = 0; i != pairs; ++i) {
        auto& id = mine[random() % pending];
        timer.cancel(id);
        id = timer.set(delay(random), [&sum] { ++sum; });
        chosen += static_cast<std::uint64_t>(&id - mine.data());
      }
      sum += chosen;
    });
  }
  for (std::thread& t : threads) t.join();
  const double time = measure::per_operation(start, 2 * pairs * static_cast<std::uint64_t>(producers));
  return {time, sum.load()};
}

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const std::size_t pending = report.small() ? 100 : 10'000;
  const std::uint64_t pairs = report.small() ? 1'000 : 1'000'000;
  for (const int producers : {1, 2}) {
    report.compare(
        std::to_string(producers) + (producers == 1 ? " producer: " : " producers: ") + "cancel one of " +
            measure::readable(pending) + " and set another",
        "ns an operation, all producers together",
        {{"rondo::timer", [=] { return produce<rondo_timer>(producers, pending, pairs); }},
         {"multimap, mutex, condvar", [=] { return produce<map_timer>(producers, pending, pairs); }}});
  }
  return report.finish();
}
