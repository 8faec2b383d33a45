// The loop of event_loops.md whose interface identifies timers by its own numbers.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <rondo/keyed_timers.hpp>
#include <rondo/polled_timer.hpp>

namespace readme_loop_timers {

using namespace std::chrono_literals;

/// Stands in for a loop that waits for other things as well.
void wait_until(std::optional<rondo::time_point> t) {
  if (t) std::this_thread::sleep_until(*t);
}

class event_loop {
 public:
  std::uint64_t run_after(rondo::duration delay, std::function<void()> f) {
    timers_.set_after(++last_, delay, std::move(f));
    return last_;
  }
  std::uint64_t run_every(rondo::duration period, std::function<void()> f) {
    timers_.set(++last_, rondo::every(period), std::move(f));
    return last_;
  }
  bool cancel(std::uint64_t number) { return timers_.cancel(number) == rondo::cancel_result::cancelled; }
  void run() {
    while (running_) {
      wait_until(timer_.next_due());
      timer_.poll();  // an exception of a task leaves run()
    }
  }
  void quit() { running_ = false; }

 private:
  rondo::polled_timer timer_{{.propagate_exceptions = true}};
  rondo::keyed_timers<std::uint64_t> timers_{timer_};
  std::uint64_t last_ = 0;
  bool running_ = true;
};

TEST_CASE("a loop with numbers of its own for timers") {
  event_loop loop;
  std::vector<std::string> log;
  const std::uint64_t late = loop.run_after(1h, [&] { log.emplace_back("late"); });
  const std::uint64_t often = loop.run_every(1ms, [&] { log.emplace_back("often"); });
  CHECK(late == 1);
  CHECK(often == 2);
  CHECK(loop.cancel(late));
  CHECK_FALSE(loop.cancel(late));
  loop.run_after(1ms, [] { throw std::runtime_error("no"); });
  loop.run_after(2ms, [&] {
    loop.cancel(often);
    loop.quit();
  });
  CHECK_THROWS_AS(loop.run(), std::runtime_error);
  loop.run();
  CHECK(!log.empty());
  CHECK(log.front() == "often");
}

}  // namespace readme_loop_timers
