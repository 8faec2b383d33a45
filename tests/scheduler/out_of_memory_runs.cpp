// Without memory, no run that was promised is lost.
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include <rondo/polled_timer.hpp>

#include "schedule_on.hpp"
#include "scheduler/core.hpp"
#include "scheduler/out_of_memory.hpp"

namespace scheduler_out_of_memory_runs {

using namespace rondo;
using namespace rondo::test;

// If operator new cannot be replaced, there is nothing to test.
TEST_SUITE_BEGIN("without memory" * doctest::skip(!failing_new::available));

template <class World>
void check_pass_without_memory() {
  for (std::size_t k = 0; k != 40; ++k) {
    CAPTURE(k);
    World w;
    const std::size_t all = w.time.pending();
    {
      const failing_new failing(k, 3);
      for (int attempt = 0; attempt != 8; ++attempt) {
        try {
          w.time.advance(20ms);
        } catch (const std::bad_alloc&) {
        }
      }
    }
    w.time.advance(1'000'000h);
    CHECK(w.runs.size() == all);
    CHECK(w.time.pending() == 0);
    CHECK(adds_up(w.time.stats()));
    CHECK(std::is_sorted(w.runs.begin(), w.runs.end(), [](auto& a, auto& b) { return a.due < b.due; }));
  }
}

TEST_CASE("a pass that runs out of memory loses nothing: the next one continues") {
  check_pass_without_memory<world>();
  check_pass_without_memory<full_world>();  // far timers that enter the window need memory
}

TEST_CASE("a poll() that runs out of memory loses nothing: the next one continues") {
  for (std::size_t k = 0; k != 10; ++k) {
    CAPTURE(k);
    polled_timer time(options{.buckets = 4});
    int runs = 0;
    for (int i = 0; i != 1000; ++i) time.schedule_after(-1ms * (i % 50), counting(runs));
    {
      const failing_new failing(k, 3);
      for (int attempt = 0; attempt != 5; ++attempt) {
        try {
          time.poll();
        } catch (const std::bad_alloc&) {
        }
      }
    }
    while (time.poll() != 0) {
    }
    CHECK(runs == 1000);
    CHECK(adds_up(time.stats()));
  }
}

/// Makes memory run out at 100 ms, just before the tasks that `more` schedules for that time.
template <class Body>
void fail_after_first(manual_timer& time, std::optional<failing_new>& failing, Body&& more) {
  time.schedule_after(100ms, [&failing] { failing.emplace(); });
  more();
  try {
    time.advance_to_next();
  } catch (const std::bad_alloc&) {
  }
}

TEST_CASE("a periodic task is armed again without any memory, and no point is lost") {
  std::optional<failing_new> failing;
  manual_timer time;
  std::vector<firing> runs;
  runs.reserve(1000);
  timer_id id;
  fail_after_first(time, failing, [&] { id = time.schedule_every(100ms, recording(runs)); });
  CHECK(runs.size() == 1);
  CHECK(time.pending(id));
  for (int i = 0; i != 30; ++i) {
    try {
      time.advance(10ms);
    } catch (const std::bad_alloc&) {
    }
  }
  failing.reset();
  time.advance(600ms);
  std::uint64_t points = 0;
  for (const firing& f : runs) points += 1 + f.missed;
  CHECK(points == 10);
  CHECK(time.now() == at(1000ms));
  CHECK(runs.back().due == at(1000ms));
  CHECK(time.stats().fired == runs.size() + 1);  // and the task that made memory run out
}

TEST_CASE("many periodic tasks are armed again without memory, each for its own time") {
  std::optional<failing_new> failing;
  manual_timer time;  // so many buckets that the next run is in another one, which has no memory yet
  std::vector<int> runs(40);
  std::vector<timer_id> ids;
  fail_after_first(time, failing, [&] {
    time.elapse(50ms);
    for (int& count : runs) ids.push_back(time.schedule_every(50ms, counting(count)));
  });
  failing.reset();
  CHECK(time.pending() == 40);
  CHECK(time.next_due() == at(150ms));

  SUBCASE("they continue") {
    time.advance(500ms);
    CHECK(runs == std::vector<int>(40, 11));
  }
  SUBCASE("they can be cancelled") {
    for (const auto id : ids) CHECK(time.cancel(id) == cancel_result::cancelled);
    CHECK_FALSE(time.next_due().has_value());
    time.advance(500ms);
    CHECK(runs == std::vector<int>(40, 1));
  }
  SUBCASE("they can be moved") {
    for (const auto id : ids) CHECK(time.reschedule_after(id, 120ms));
    CHECK(time.next_due() == at(220ms));
    time.advance(120ms);
    CHECK(runs == std::vector<int>(40, 2));
  }
  SUBCASE("they come back from stop()") {
    const auto list = time.stop();
    REQUIRE(list.size() == 40);
    for (std::size_t i = 0; i != list.size(); ++i) {
      CHECK(list[i].due == at(150ms));
      CHECK(list[i].id == ids[i]);
    }
  }
  CHECK(adds_up(time.stats()));
}

TEST_CASE("late runs of a burst need no memory, inline and on an executor") {
  for (const bool inline_runs : {true, false}) {
    CAPTURE(inline_runs);
    std::vector<job> jobs;
    jobs.reserve(100);
    options o;
    if (!inline_runs) o.run_on = [&](job j) { jobs.push_back(std::move(j)); };
    std::vector<firing> runs;
    runs.reserve(100);
    manual_timer time(o);
    time.schedule(rondo::every(10ms).on_missed(rondo::missed_runs::burst), recording(runs));
    time.elapse(100ms);
    {
      const failing_new failing;
      for (int i = 0; i != 20; ++i) {
        try {
          time.advance(0s);
        } catch (const std::bad_alloc&) {
        }
        for (job& j : jobs) j();
        jobs.clear();
      }
    }
    for (int i = 0; i != 20; ++i) {
      time.advance(0s);
      for (job& j : jobs) j();
      jobs.clear();
    }
    REQUIRE(runs.size() == 10);
    for (std::size_t i = 0; i != 10; ++i) CHECK(runs[i].due == at((static_cast<int>(i) + 1) * 10ms));
  }
}

TEST_CASE("submitting a run allocates nothing in the library") {
  std::vector<job> jobs;
  jobs.reserve(100);
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  int runs = 0;
  for (int i = 0; i != 10; ++i) time.schedule_after(1ms, counting(runs));
  time.elapse(1ms);
  {
    const failing_new failing;
    CHECK(time.advance(0s) == 10);
    for (job& j : jobs) j();
  }
  CHECK(runs == 10);
  CHECK(time.stats().failed == 0);
}

TEST_CASE("overlapping runs without memory for a ticket wait for the next pass") {
  std::vector<job> jobs;
  jobs.reserve(100);
  std::vector<firing> runs;
  runs.reserve(100);
  manual_timer time(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule(rondo::every(10ms).on_overlap(rondo::overlapping_runs::allow), recording(runs));
  time.advance(10ms);
  bool refused = false;
  {
    const failing_new failing;
    try {
      time.advance(10ms);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  }
  CHECK(refused);
  CHECK(jobs.size() == 1);
  CHECK(time.advance(0s) == 1);
  for (job& j : jobs) j();
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].due == at(20ms));
  CHECK(runs[1].run == 2);
}

TEST_CASE("a point that is dropped because a run is in progress needs no memory, and stops no pass") {
  std::vector<job> jobs;
  jobs.reserve(10);
  int runs = 0;
  manual_timer time;
  time.schedule_every(10ms, doing_nothing(), on([&](job j) { jobs.push_back(std::move(j)); }));
  time.advance(10ms);
  time.schedule_after(10ms, counting(runs));
  {
    const failing_new failing;
    time.advance(10ms);
  }
  CHECK(jobs.size() == 1);
  CHECK(runs == 1);
  CHECK(time.stats().overlapped == 1);
}

TEST_CASE("even without memory, a run that was kept back waits for the driver") {
  for (const auto& r :
       {rondo::every(10ms).on_overlap(rondo::overlapping_runs::queue_one), rondo::after_completion(10ms)}) {
    CAPTURE(r);
    std::vector<job> jobs;
    jobs.reserve(100);
    std::vector<firing> runs;
    runs.reserve(100);
    manual_timer time(options{.buckets = 512, .run_on = [&](job j) { jobs.push_back(std::move(j)); }});
    time.schedule(r, recording(runs));
    time.advance(25ms);
    {
      const failing_new failing;
      jobs.at(0)();
    }
    CHECK(time.next_due().has_value());
    time.advance(15ms);
    jobs.at(1)();
    CHECK(runs.size() == 2);
  }
}

TEST_CASE("dropping, refusing and cancelling jobs needs no memory") {
  std::vector<job> jobs;
  jobs.reserve(10);
  bool refuses = false;
  manual_timer time(options{.run_on =
                                [&](job j) {
                                  if (refuses) throw 1;
                                  jobs.push_back(std::move(j));
                                },
                            .on_error = [](std::exception_ptr, const firing&) {}});
  const auto token = std::make_shared<int>(0);
  for (int i = 0; i != 10; ++i) time.schedule_after(1ms, [token] {});
  const timer_id cancelled = time.schedule_after(2ms, [token] {});
  const timer_id often = time.schedule_every(3ms, [token] {});
  time.elapse(1ms);
  {
    const failing_new failing;
    time.advance(0s);
    jobs.clear();
    time.advance(1ms);
    time.cancel(cancelled);
    jobs.clear();
    refuses = true;
    time.advance(1ms);
    refuses = false;
    time.advance(3ms);
    jobs.clear();
    time.cancel(often);
  }
  const auto s = time.stats();
  CHECK(s.rejected == 11);
  CHECK(s.failed == 1);
  CHECK(s.completed == 10);
  CHECK(s.cancelled == 2);
  CHECK(adds_up(s));
  CHECK(token.use_count() == 1);
}

/// Captures what is written to std::cerr during its lifetime, without allocating.
class noted_cerr : std::streambuf {
 public:
  noted_cerr() : old_(std::cerr.rdbuf(this)) { setp(text_.begin(), text_.end()); }
  ~noted_cerr() override { std::cerr.rdbuf(old_); }
  std::string text() const { return {pbase(), pptr()}; }

 private:
  std::array<char, 400> text_{};
  std::streambuf* const old_;
};

TEST_CASE("an exception of a task is reported even without memory") {
  const noted_cerr cerr;
  manual_timer time;
  time.schedule_after(1ms, [] { throw 1; });
  time.elapse(1ms);
  {
    const failing_new failing;
    time.advance(0s);
  }
  CHECK(time.stats().failed == 1);
  CHECK(cerr.text() == "rondo: a task threw, but there is no memory to say what\n");
}

/// A core that counts how often its driver is woken.
class woken_core final : public detail::core {
 public:
  explicit woken_core(const options& o) : core(o, at(0s), kind_of_time::virtual_time) {}
  time_point now() const noexcept override { return time; }

  time_point time = at(0s);
  int wakes = 0;

 private:
  void next_due_moved_earlier() noexcept override { ++wakes; }
};

/// A periodic timer whose first run ends on another thread, without memory for the next one.
struct without_memory_for_next {
  std::vector<job> jobs;
  std::vector<firing> runs;
  std::shared_ptr<woken_core> core =
      std::make_shared<woken_core>(options{.run_on = [this](job j) { jobs.push_back(std::move(j)); }});
  timer_id id;

  explicit without_memory_for_next(const recurrence& when) {
    jobs.reserve(100);
    runs.reserve(100);
    id = schedule_on(*core, when, at(0s), recording(runs));
  }
  ~without_memory_for_next() {
    core->stop();
    jobs.clear();
    core->retire();
  }

  std::size_t pass(duration d, std::size_t limit = unlimited) {
    core->time = at(d);
    return core->run_pass(time_point::max(), limit);
  }
  /// The run ends when the clock says `d`, up to where the driver has come. Returns how often that wakes the driver. From 8 ms
  /// after `d` on, other timers are due.
  int end_first_run(duration d) {
    use_up_chunks([&](duration after) { schedule_on(*core, at(d) + after, at(d), doing_nothing()); });
    const int before = core->wakes;
    bool struck = false;
    {
      const failing_new failing;
      jobs.at(0)();
      struck = failing.struck();
    }
    CHECK(struck);
    return core->wakes - before;
  }
  std::string drawing() {
    std::ostringstream out;
    core->dump(out);
    return out.str();
  }
};

constexpr const char* one_waits = "not in the wheel: 1 waiting for memory\n";

TEST_CASE("a task whose run ends on another thread without memory for the next run wakes the driver") {
  without_memory_for_next w(after_completion(1ms));
  CHECK(w.pass(1ms) == 1);
  CHECK(w.end_first_run(1ms) == 1);
  CHECK(w.drawing().find(one_waits) != std::string::npos);
  CHECK(w.core->next_due() == at(2ms));
  CHECK(w.pass(2ms) == 1);
}

TEST_CASE("a timer that waits for memory keeps its deadline, and its turn among those of its tick") {
  without_memory_for_next w(after_completion(5ms));
  CHECK(w.pass(5ms) == 1);
  constexpr std::size_t before = detail::chunk_pool::chunk_nodes;  // they fill the chunk of its tick
  const auto schedule_for_its_tick = [&w] { schedule_on(*w.core, at(10ms), at(5ms), recording(w.runs)); };
  for (std::size_t i = 0; i != before; ++i) schedule_for_its_tick();
  w.end_first_run(5ms);
  CHECK(w.core->due(w.id) == at(10ms));
  schedule_for_its_tick();
  CHECK(w.pass(10ms) == before + 2);
  for (std::size_t i = 1; i != w.jobs.size(); ++i) w.jobs[i]();
  REQUIRE(w.runs.size() == 1 + before + 2);
  CHECK(w.runs[1 + before].id == w.id);
  CHECK(w.runs[1 + before].due == at(10ms));
}

TEST_CASE("a timer that waits for memory is in the wheel as soon as there is some") {
  without_memory_for_next w(after_completion(5ms));
  CHECK(w.pass(5ms) == 1);
  w.end_first_run(5ms);
  CHECK(w.pass(6ms) == 0);
  CHECK(w.drawing().find("waiting for memory") == std::string::npos);
  SUBCASE("there it fires") {
    CHECK(w.pass(10ms) == 1);
    CHECK(w.core->pending(w.id));
  }
  SUBCASE("there it is cancelled") {
    CHECK(w.core->cancel(w.id) == cancel_result::cancelled);
    CHECK(w.core->next_due() > at(10ms));
    CHECK(w.pass(10ms) == 0);
  }
}

TEST_CASE("a timer that waits for memory is part of the pass at its time") {
  without_memory_for_next w(after_completion(5ms));
  CHECK(w.pass(5ms) == 1);
  w.end_first_run(5ms);
  CHECK(w.pass(10ms, 0) == 0);
  CHECK(w.drawing().find("waiting for memory") == std::string::npos);
  CHECK(w.pass(10ms) == 1);
}

TEST_CASE("a run that was kept back waits for memory, and its timer no longer for the next point") {
  without_memory_for_next w(rondo::every(5ms).on_overlap(rondo::overlapping_runs::queue_one));
  CHECK(w.pass(5ms) == 1);
  CHECK(w.pass(10ms) == 0);
  CHECK(w.core->next_due() == at(15ms));
  w.end_first_run(10ms);
  CHECK(w.drawing().find(one_waits) != std::string::npos);
  CHECK(w.core->next_due() == at(10ms));
  SUBCASE("it runs once there is some") {
    CHECK(w.pass(10ms) == 1);
    w.jobs.at(1)();
    CHECK(w.runs.at(1).due == at(10ms));
    CHECK(w.core->next_due() == at(15ms));
  }
  SUBCASE("it is cancelled") {
    CHECK(w.core->cancel(w.id) == cancel_result::cancelled);
    CHECK(w.core->next_due() > at(15ms));
  }
}

TEST_SUITE_END();

}  // namespace scheduler_out_of_memory_runs
