// The end of a scheduler against every call there is, on many threads: the accounts close to the last task.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <thread>
#include <vector>

#include <rondo/rondo.hpp>

#include "on_top/coroutines.hpp"
#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace {

using namespace rondo;
using namespace rondo::test;

/// Throws all away.
class nowhere : public std::streambuf {
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
};

/// Numbers without any pattern that matters.
class dice {
 public:
  explicit dice(unsigned seed) : state_(seed) {}
  unsigned below(unsigned n) {
    state_ = state_ * 1664525U + 1013904223U;
    return (state_ >> 8) % n;
  }
  rondo::duration soon() { return below(2000) * 1us; }

 private:
  unsigned state_;
};

/// Uses a scheduler in every way on threads of its own, each until it is refused, as the scheduler has ended.
class everything {
 public:
  everything(scheduler& s, rondo::executor side) : scheduler_(s), side_(std::move(side)) {
    start([this](dice& d) { plain(d); });
    start([this](dice& d) { keyed(d); });
    start([this](dice& d) { scoped(d); });
    start([this](dice& d) { coroutines(d); });
    start([this](dice& d) { ask(d); });
  }
  bool under_way() { return begun_.wait(static_cast<long>(threads_.size())); }
  void join() {
    over_ = true;  // for those that nobody refuses
    for (std::thread& t : threads_) t.join();
  }

  std::atomic<std::uint64_t> runs{0}, runs_after_end{0};
  std::atomic<std::uint64_t> sleeps{0}, slept{0}, dropped{0};
  std::atomic<bool> ended{false};
  const std::shared_ptr<int> token = std::make_shared<int>(0);

 private:
  template <class Use>
  void start(Use&& use) {
    threads_.emplace_back([this, use, seed = static_cast<unsigned>(threads_.size())] {
      dice d(seed);
      int turns = 0;
      const auto turn = [&] {
        use(d);
        if (++turns == 30) begun_.open();
      };
      try {
        while (!over_) turn();
      } catch (const rondo::stopped_error&) {
      }
      if (turns < 30) begun_.open();
    });
  }

  auto work() {
    return [this, held = token] {
      runs_after_end += ended.load();
      ++runs;
    };
  }

  void plain(dice& d) {
    timer_id ids[] = {scheduler_.schedule_after(d.soon(), work()),
                      scheduler_.schedule_after(d.soon(), work(), rondo::on(side_)),
                      scheduler_.schedule_at(scheduler_.now() + d.soon(), work()),
                      scheduler_.schedule_every(100us + d.soon(), work()),
                      scheduler_.schedule(rondo::after_completion(100us).times(3), work()),
                      scheduler_.schedule_after(rondo::duration::max(), work())};
    for (const timer_id id : ids) {
      if (d.below(3) == 0) scheduler_.reschedule_after(id, d.soon());
      if (d.below(3) == 0) scheduler_.cancel(id);
    }
    scheduler_.cancel_and_wait(ids[3]);
    scheduler_.cancel_and_wait(ids[d.below(3)]);
  }

  void keyed(dice& d) {
    const int key = static_cast<int>(d.below(20));
    keyed_.set_after(key, d.soon(), work());
    keyed_.try_set_after(key + 1, d.soon(), work());
    keyed_.set(key + 2, rondo::every(200us).times(4), work());
    keyed_.reschedule_after(key + 1, d.soon());
    if (keyed_.contains(key + 3)) keyed_.cancel(key + 3);
    if (d.below(20) == 0) keyed_.clear();
    static_cast<void>(keyed_.size());
  }

  void scoped(dice& d) {
    timer_scope own(scheduler_);
    for (int i = 0; i != 5; ++i) {
      const timer_id id = scope_.schedule_after(d.soon(), work());
      own.schedule_every(50us + d.soon(), work());
      if (d.below(2) == 0) scope_.cancel(id);
      if (d.below(2) == 0) scope_.reschedule_after(id, d.soon());
    }
    if (d.below(10) == 0) scope_.cancel_all();
    static_cast<void>(scope_.pending());
  }

  detached sleeper(rondo::duration delay) {
    const auto held = token;
    try {
      co_await rondo::sleep_for(scheduler_, delay);
      ++slept;
    } catch (const rondo::stopped_error&) {
      ++dropped;
    }
  }

  void coroutines(dice& d) {
    const auto before = dropped.load();
    for (int i = 0; i != 5; ++i) {
      ++sleeps;
      sleeper(d.soon());
    }
    if (dropped != before) throw rondo::stopped_error("the scheduler has ended");
  }

  void ask(dice& d) {
    nowhere buffer;
    std::ostream out(&buffer);
    if (d.below(20) == 0) scheduler_.dump(out);
    static_cast<void>(scheduler_.stats());
    static_cast<void>(scheduler_.pending());
    static_cast<void>(scheduler_.next_due());
    if (auto* const polled = dynamic_cast<polled_timer*>(&scheduler_))
      polled->on_earlier([this, held = token] { static_cast<void>(scheduler_.next_due()); });
  }

  scheduler& scheduler_;
  const rondo::executor side_;
  keyed_timers<int> keyed_{scheduler_};
  timer_scope scope_{scheduler_};
  gate begun_;
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

/// end(scheduler) ends it, and returns how many timers stop() has handed back.
void check_end(scheduler& s, const std::function<std::size_t(scheduler&)>& end) {
  pool side(1);
  std::shared_ptr<int> token;
  {
    everything users(s, side.executor());
    token = users.token;
    REQUIRE(users.under_way());
    const std::size_t returned = end(s);
    users.ended = true;
    users.join();
    const auto stats = s.stats();
    CHECK(users.runs_after_end == 0);
    CHECK(stats.returned == returned);
    CHECK(stats.pending == 0);
    CHECK(stats.fired >= users.runs + users.slept);  // also what a key's next task had replaced as it began
    CHECK(stats.failed == 0);
    CHECK(users.sleeps == users.slept + users.dropped);
    CHECK(adds_up(stats));
  }
  if (auto* const polled = dynamic_cast<polled_timer*>(&s)) polled->on_earlier(nullptr);
  CHECK(token.use_count() == 1);
}

std::size_t stop(scheduler& s) { return s.stop().size(); }

/// Some at once, one of which gets the timers.
std::size_t stop_thrice(scheduler& s) {
  std::atomic<std::size_t> returned{0};
  std::vector<std::thread> stoppers;
  for (int i = 0; i != 3; ++i) stoppers.emplace_back([&] { returned += s.stop().size(); });
  for (std::thread& t : stoppers) t.join();
  return returned;
}

std::size_t drain(scheduler& s) {
  CHECK(s.drain(patience));
  return s.stop().size();
}

std::size_t drain_and_stop_in_the_middle(scheduler& s) {
  std::thread drainer([&] { s.drain(patience); });
  const std::size_t returned = s.stop().size();
  drainer.join();
  return returned;
}

const std::function<std::size_t(scheduler&)> ends[] = {stop, stop_thrice, drain,
                                                       drain_and_stop_in_the_middle};

constexpr auto small_ticks = [] { return options{.tick = 10us, .buckets = 32}; };

TEST_CASE("a timer ends in the middle of everything") {
  for (const auto& end : ends)
    for (int round = 0; round != 2; ++round) {
      timer t(small_ticks());
      check_end(t, end);
    }
}

TEST_CASE("a timer whose tasks run on a pool ends in the middle of everything") {
  for (const auto& end : ends)
    for (int round = 0; round != 2; ++round) {
      pool workers(2);
      options o = small_ticks();
      o.run_on = workers.executor();
      timer t(o);
      check_end(t, end);
    }
}

TEST_CASE("a polled timer ends in the middle of everything") {
  for (const auto& end : ends)
    for (int round = 0; round != 2; ++round) {
      polled_timer t(small_ticks());
      std::atomic<bool> over{false};
      std::thread loop([&] {
        while (!over)
          if (t.poll(50) == 0) std::this_thread::yield();
      });
      check_end(t, end);
      over = true;
      loop.join();
    }
}

}  // namespace
