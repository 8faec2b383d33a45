// The driver's pass against other calls, switched at every point where either holds no lock and is about to
// take one, or to use an atomic.
#include "scheduler/counted_locks.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/core_members.hpp"
#include "failing_new.hpp"
#include "scheduler/virtual_time.hpp"

namespace {

using namespace rondo;
using namespace rondo::test;

/// What this thread does, once, at the n-th of those points.
struct interruption {
  std::size_t points_left = 0;
  std::function<void()> act;

  static interruption& of_this_thread() {
    thread_local interruption mine;
    return mine;
  }
  static void at_point() {
    interruption& mine = of_this_thread();
    if (!mine.act || held_locks::count() != 0 || mine.points_left-- != 0) return;
    std::exchange(mine.act, nullptr)();
  }
};

template <lock_rank Rank>
struct interrupted_mutex : counted_mutex<Rank> {
  void lock() {
    interruption::at_point();
    counted_mutex<Rank>::lock();
  }
};

template <class T>
struct interrupted_atomic : std::atomic<T> {
  using plain = std::atomic<T>;
  using order = std::memory_order;
  using plain::plain;
  T load(order o = order::seq_cst) const noexcept { return at_point().plain::load(o); }
  void store(T v, order o = order::seq_cst) noexcept { at_point().plain::store(v, o); }
  T exchange(T v, order o = order::seq_cst) noexcept { return at_point().plain::exchange(v, o); }
  T fetch_add(T v, order o = order::seq_cst) noexcept { return at_point().plain::fetch_add(v, o); }
  T fetch_sub(T v, order o = order::seq_cst) noexcept { return at_point().plain::fetch_sub(v, o); }
  bool compare_exchange_weak(T& expected, T v, order o = order::seq_cst) noexcept {
    return at_point().plain::compare_exchange_weak(expected, v, o);
  }

 private:
  const interrupted_atomic& at_point() const noexcept {
    interruption::at_point();
    return *this;
  }
  interrupted_atomic& at_point() noexcept {
    interruption::at_point();
    return *this;
  }
};

struct interrupted_locks : counted_locks {
  using stripe_mutex = interrupted_mutex<lock_rank::stripe>;
  using queue_mutex = interrupted_mutex<lock_rank::innermost>;
  using record_mutex = interrupted_mutex<lock_rank::record>;
  using shard_mutex = interrupted_mutex<lock_rank::innermost>;
  using list_mutex = interrupted_mutex<lock_rank::innermost>;

  template <class T>
  using atomic = interrupted_atomic<T>;
};

/// The core under these locks, on a time that one of its passes can be told to wait in.
class probe final : public rondo::detail::basic_core<interrupted_locks> {
 public:
  using basic_core::basic_core;
  time_point now() const noexcept override {
    if (auto wait = std::exchange(before_now, nullptr)) wait();
    return at(duration(now_.load()));
  }
  void set_now(duration d) { now_ = d.count(); }

  inline static thread_local std::function<void()> before_now;

 private:
  std::atomic<duration::rep> now_{0};
};

/// Four one-shots, due or not at 2 ms, a periodic task, and a job at hand: what that does is inside a task.
struct scene {
  std::vector<job> jobs;
  std::shared_ptr<probe> core = std::make_shared<probe>(options{.buckets = 2,
                                                                .run_on =
                                                                    [this](job j) {
                                                                      if (jobs.empty())
                                                                        return jobs.push_back(std::move(j));
                                                                      j();
                                                                    }},
                                                        at(0s));
  std::function<void(scene&)> in_the_job;
  std::vector<int> runs = std::vector<int>(4);
  std::vector<int> ends = std::vector<int>(4);  // cancelled or refused
  std::vector<timer_id> ids, returned;
  int periodic_runs = 0;
  std::uint64_t missed = 0;
  timer_id often;
  bool stopped = false;

  scene() {
    core->schedule(at(0s), at(0s), [this] { in_the_job(*this); });
    core->run_pass(time_point::max(), rondo::unlimited);
    REQUIRE(jobs.size() == 1);
    const duration dues[] = {1ms, 2ms, 2ms, 3ms};
    for (std::size_t i = 0; i != 4; ++i)
      ids.push_back(core->schedule(at(dues[i]), at(0s), [this, i] { ++runs[i]; }));
    often = core->schedule(rondo::every(1ms).first_at(at(2ms)), at(0s), [this](const firing& f) {
      ++periodic_runs;
      missed += f.missed;
    });
    core->set_now(2ms);
  }
  ~scene() { core->retire(); }
  scene(const scene&) = delete;
  scene& operator=(const scene&) = delete;

  void run_job() { jobs[0](); }
  void pass() { core->run_pass(time_point::max(), rondo::unlimited); }

  void cancel(std::size_t i) { ends[i] += core->cancel(ids[i]) == cancel_result::cancelled; }
  void move(std::size_t i, duration to) { core->reschedule(ids[i], deadline(to), core->now()); }
  static time_point deadline(duration due) { return due == duration::max() ? time_point::max() : at(due); }
  void schedule(duration due) {
    const std::size_t i = runs.size();
    runs.push_back(0);
    ends.push_back(0);
    try {
      ids.push_back(core->schedule(deadline(due), core->now(), [this, i] { ++runs[i]; }));
    } catch (const rondo::stopped_error&) {
      ids.emplace_back();
      ++ends[i];
    }
  }
  void stop() {
    for (const unfired& u : core->stop()) returned.push_back(u.id);
    stopped = true;
  }
  void stop_from_inside() {
    in_the_job = [](scene& own) { own.stop(); };
    run_job();
  }

  void check() {
    in_the_job = [](scene&) {};
    run_job();  // if nobody has
    if (!stopped) {
      core->set_now(10ms);
      pass();
      core->cancel(often);
    }
    CHECK(missed <= 10);
    CHECK(core->stats().missed == missed);
    for (std::size_t i = 0; i != runs.size(); ++i) {
      CAPTURE(i);
      CHECK(runs[i] + ends[i] + std::count(returned.begin(), returned.end(), ids[i]) == 1);
    }
    CHECK((stopped || periodic_runs > 0));
    CHECK(core->pending() == 0);
    CHECK(adds_up(core->stats()));
  }
};

/// A pass that is interrupted by the job, at each point in turn.
template <class Act>
void interrupt_the_pass(Act&& act) {
  for (std::size_t point = 0;; ++point) {
    CAPTURE(point);
    scene s;
    s.in_the_job = act;
    bool happened = false;
    interruption::of_this_thread() = {point, [&] {
                                        std::thread([&] { s.run_job(); }).join();
                                        happened = true;
                                      }};
    s.pass();
    interruption::of_this_thread() = {};
    if (!happened) s.run_job();
    s.check();
    if (happened) continue;
    CHECK(point > 10);
    return;
  }
}

/// The job, interrupted at each point in turn by a pass that had already looked whether it may go on.
template <class Act>
void interrupt_with_the_pass(Act&& act) {
  for (std::size_t point = 0;; ++point) {
    CAPTURE(point);
    scene s;
    std::binary_semaphore has_looked{0}, may_go_on{0};
    std::thread driver([&] {
      probe::before_now = [&] {
        has_looked.release();
        may_go_on.acquire();
      };
      s.pass();
    });
    has_looked.acquire();
    bool happened = false;
    const auto let_go = [&] {
      may_go_on.release();
      driver.join();
      happened = true;
    };
    s.in_the_job = [&](scene& own) {
      interruption::of_this_thread() = {point, let_go};
      act(own);
      interruption::of_this_thread() = {};
    };
    s.run_job();
    const bool reached = happened;
    if (!reached) let_go();
    s.check();
    if (reached) continue;
    CHECK(point > 0);
    return;
  }
}

TEST_CASE("stop() from inside, at every point of a pass, loses nothing and runs nothing twice") {
  interrupt_the_pass([](scene& s) { s.stop(); });
}

TEST_CASE("a pass, at every point of stop() from inside, loses nothing and runs nothing twice") {
  interrupt_with_the_pass([](scene& s) { s.stop(); });
}

TEST_CASE("cancelling at every point of a pass") {
  for (std::size_t i = 0; i != 4; ++i) interrupt_the_pass([i](scene& s) { s.cancel(i); });
}

TEST_CASE("a pass at every point of cancelling") {
  for (std::size_t i = 0; i != 4; ++i) interrupt_with_the_pass([i](scene& s) { s.cancel(i); });
}

TEST_CASE("moving at every point of a pass") {
  for (std::size_t i = 0; i != 4; ++i)
    for (const duration to : {duration(0ms), duration(2ms), duration(5ms)})
      interrupt_the_pass([i, to](scene& s) { s.move(i, to); });
}

TEST_CASE("a pass at every point of moving") {
  for (std::size_t i = 0; i != 4; ++i)
    for (const duration to : {duration(0ms), duration(2ms), duration(5ms)})
      interrupt_with_the_pass([i, to](scene& s) { s.move(i, to); });
}

TEST_CASE("a periodic task moved to now behind the back of a pass misses nothing") {
  // The pass has read 2 ms; the deadline is later than that, and yet in the same tick.
  interrupt_the_pass([](scene& s) {
    for (std::size_t i = 0; i != 3; ++i) s.cancel(i);  // so that no run before it makes the pass look again
    s.core->set_now(2'500us);
    s.core->reschedule(s.often, at(2'500us), at(2'500us));
  });
}

/// A call of a thread that is not inside, interrupted at each point in turn by something else.
template <class Call, class Other>
void interrupt(Call&& call, Other&& other) {
  for (std::size_t point = 0;; ++point) {
    CAPTURE(point);
    scene s;
    bool happened = false;
    interruption::of_this_thread() = {point, [&] {
                                        std::thread([&] { other(s); }).join();
                                        happened = true;
                                      }};
    call(s);
    interruption::of_this_thread() = {};
    if (!happened) other(s);
    s.check();
    if (happened) continue;
    CHECK(point > 0);
    return;
  }
}

TEST_CASE("stop() from inside, at every point of another call, finds or refuses its timer") {
  const auto stop = [](scene& s) { s.stop_from_inside(); };
  for (const duration to : {duration(0ms), duration(2ms), duration(5ms), duration::max()}) {
    CAPTURE(to);
    interrupt([to](scene& s) { s.schedule(to); }, stop);
    for (std::size_t i = 0; i != 4; ++i) interrupt([i, to](scene& s) { s.move(i, to); }, stop);
  }
  for (std::size_t i = 0; i != 4; ++i) interrupt([i](scene& s) { s.cancel(i); }, stop);
}

TEST_CASE("a stop() without memory for what others schedule meanwhile leaves all to the next one" *
          doctest::skip(!failing_new::available)) {
  int refusals = 0;
  bool interrupted = true;
  for (std::size_t point = 0; interrupted; ++point) {
    CAPTURE(point);
    const auto core = std::make_shared<probe>(options{}, at(0s));
    std::size_t scheduled = 0, returned = 0;
    std::optional<failing_new> failing;
    interrupted = false;
    interruption::of_this_thread() = {point, [&] {
                                        interrupted = true;
                                        try {
                                          for (; scheduled != 1000; ++scheduled)
                                            core->schedule(at(1ms), at(0s), doing_nothing());
                                        } catch (const rondo::stopped_error&) {
                                        }
                                        failing.emplace();
                                      }};
    bool refused = false;
    try {
      returned = core->stop().size();
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    failing.reset();
    interruption::of_this_thread() = {};
    if (refused) returned = core->stop().size();
    refusals += refused;
    CHECK(returned == scheduled);
    CHECK(core->pending() == 0);
    CHECK(adds_up(core->stats()));
    core->retire();
  }
  CHECK(refusals > 0);
}

TEST_CASE("a pass at every point of scheduling runs the timer once") {
  for (const duration due : {duration(0ms), duration(2ms), duration(5ms)})
    interrupt([due](scene& s) { s.schedule(due); }, [](scene& s) { s.pass(); });
}

TEST_CASE("of two calls that want the last place one gets it, whenever the other comes") {
  bool interrupted = true;
  for (std::size_t point = 0; interrupted; ++point) {
    CAPTURE(point);
    const auto core = std::make_shared<probe>(options{.max_pending = 1}, at(0s));
    std::atomic<int> accepted{0};
    const auto schedule = [&] {
      try {
        core->schedule(at(1ms), at(0s), doing_nothing());
        ++accepted;
      } catch (const rondo::capacity_error&) {
      }
    };
    interrupted = false;
    interruption::of_this_thread() = {point, [&] {
                                        std::thread(schedule).join();
                                        interrupted = true;
                                      }};
    schedule();
    interruption::of_this_thread() = {};
    CHECK(accepted == 1);
    CHECK(core->pending() == 1);
    core->retire();
  }
}

TEST_CASE("what is pending is due at every point of a pass") {
  interrupt_the_pass([](scene& s) {
    CHECK(s.core->next_due().has_value());  // if nothing else, the one at 3 ms and the periodic one
    CHECK(s.core->pending(s.often));
  });
}

}  // namespace
