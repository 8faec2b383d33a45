// Traces of schedulers on real threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/trace.hpp>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_trace {

using namespace rondo;
using namespace rondo::test;

/// Keeps a processor busy.
void work_for(duration d) {
  const auto end = std::chrono::steady_clock::now() + d;
  while (std::chrono::steady_clock::now() < end) {
  }
}

struct total {
  duration lateness{}, woken_late{}, behind_tasks{}, in_executor{}, in_pass{};
  bool adds_up = true;

  explicit total(const std::vector<trace::late_run>& runs) {
    for (const trace::late_run& r : runs) {
      adds_up &= std::min({r.woken_late, r.behind_tasks, r.in_executor, r.in_pass}) >= 0ns &&
                 r.woken_late + r.behind_tasks + r.in_executor + r.in_pass == r.lateness;
      lateness += r.lateness;
      woken_late += r.woken_late;
      behind_tasks += r.behind_tasks;
      in_executor += r.in_executor;
      in_pass += r.in_pass;
    }
  }
};

/// Threads that compete with the driver, one for each processor.
class busy_loops {
 public:
  busy_loops() {
    for (unsigned i = 0; i != std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] {
        while (!is_over_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~busy_loops() {
    is_over_ = true;
    for (std::thread& t : threads_) t.join();
  }
  busy_loops(const busy_loops&) = delete;
  busy_loops& operator=(const busy_loops&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

/// What the tasks of a test have seen themselves, each on one thread.
struct seen {
  time_point handed_over, begin, end;
};

/// How much of that time tasks on the driver took, as they have seen it. Precondition: they are in order, and none overlaps another.
duration covered(const std::vector<seen>& on_driver, time_point from, time_point to) {
  duration sum{};
  const auto first =
      std::partition_point(on_driver.begin(), on_driver.end(), [&](const seen& s) { return s.end <= from; });
  for (auto s = first; s != on_driver.end() && s->begin < to; ++s)
    sum += std::min(s->end, to) - std::max(s->begin, from);
  return sum;
}

TEST_CASE("of what ten thousand runs under load have waited for, late() finds 99 %") {
  constexpr std::size_t runs = 10'000;
  const auto into = std::make_shared<trace>();
  std::vector<seen> all(runs);
  std::vector<time_point> due(runs);
  gate done;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  {
    const busy_loops load;
    pool workers(2);
    timer t({.tick = 10us, .traced_by = into});
    for (std::size_t i = 0; i != runs; ++i) {
      const duration takes = i % 100 < 2 ? duration(2ms) : duration(10us);
      const auto task = [&, i, takes] {
        all[i].begin = now();
        work_for(takes);
        done.open();
        all[i].end = now();
      };
      due[i] = t.now() + static_cast<int>(i * 7919 % runs) * 20us;
      if (i % 2 == 0) {
        t.schedule_at(due[i], task, {.name = std::to_string(i)});
      } else {
        const auto hand_over = [&, i](job j) {
          all[i].handed_over = now();
          workers.post(std::move(j));
        };
        t.schedule_at(due[i], task, {.run_on = hand_over, .name = std::to_string(i)});
      }
    }
    REQUIRE(done.wait(runs));
  }
  REQUIRE(into->lost() == 0);
  std::vector<seen> on_driver;
  for (std::size_t i = 0; i != runs; i += 2) on_driver.push_back(all[i]);
  std::sort(on_driver.begin(), on_driver.end(),
            [](const seen& a, const seen& b) { return a.begin < b.begin; });
  const std::vector<trace::late_run> late = into->late(0ns);
  CHECK(total(late).adds_up);
  duration missing{};
  for (const trace::late_run& r : late) {
    const std::size_t i = std::stoul(r.name);
    const bool is_job = i % 2 != 0;
    const time_point to_driver = is_job ? all[i].handed_over : all[i].begin;
    const duration tasks = covered(on_driver, due[i], std::max(due[i], to_driver));
    const duration in_executor = is_job ? all[i].begin - std::max(due[i], to_driver) : 0ns;
    missing += std::max(0ns, tasks - r.behind_tasks) + std::max(0ns, in_executor - r.in_executor);
  }
  CAPTURE(total(late).lateness.count());
  CAPTURE(missing.count());
  CHECK(missing <= total(late).lateness / 100);
}

TEST_CASE("a trace is read while schedulers that come and go record") {
  const auto into = std::make_shared<trace>(64);
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over) {
      CHECK(total(into->late(0ns)).adds_up);
      std::ostringstream out;
      into->write(out);
      CHECK(out.str().ends_with("]}\n"));
      const auto lost = into->lost();
      CHECK(lost <= into->lost());
    }
  });
  on_threads(3, [&](std::size_t which) {
    for (int round = 0; round != 20; ++round) {
      gate done;
      pool workers(2);
      timer t({.traced_by = into});
      for (int i = 0; i != 50; ++i) {
        const auto task = [&done] { done.open(); };
        if (which == 0)
          t.schedule_after(0ms, task, {.run_on = workers.executor(), .name = "on the pool"});
        else
          t.schedule_after(0ms, task, {.name = "a task of thread " + std::to_string(which)});
      }
      CHECK(done.wait(50));
    }
  });
  is_over = true;
  reader.join();
  CHECK(into->lost() > 0);
  for (const trace::late_run& r : into->late(0ns)) {
    const bool is_known = r.name == "on the pool" || r.name.starts_with("a task of thread ");
    CHECK(is_known);
  }
}

TEST_CASE("a trace of a timer that outlives its scheduler keeps what a job does afterwards") {
  const auto into = std::make_shared<trace>();
  std::vector<job> jobs;
  gate handed_over;
  {
    timer t({.run_on =
                 [&](job j) {
                   jobs.push_back(std::move(j));
                   handed_over.open();
                 },
             .traced_by = into});
    t.schedule_after(0ms, [] {});
    REQUIRE(handed_over.wait());
  }
  jobs[0]();  // does nothing
  CHECK(into->late(-1ns).empty());
  std::ostringstream out;
  into->write(out);
  CHECK(out.str().find("hand over") != std::string::npos);
}

}  // namespace threads_trace
