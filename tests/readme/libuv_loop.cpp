// The listings of event_loops.md about libuv.
#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include <doctest/doctest.h>
#include <rondo/polled_timer.hpp>
#ifdef __linux__
#include <rondo/event_fd.hpp>
#endif

namespace readme_libuv_loop {

using namespace std::chrono_literals;

struct uv_driver {
  rondo::polled_timer timer;
  uv_loop_t* loop;
  uv_timer_t alarm;
  uv_async_t earlier;  // the only libuv handle that other threads may use

  explicit uv_driver(uv_loop_t* on) : loop(on) {
    alarm.data = earlier.data = this;
    uv_timer_init(loop, &alarm);
    uv_async_init(loop, &earlier, [](uv_async_t* h) { static_cast<uv_driver*>(h->data)->set_alarm(); });
    timer.on_earlier([this] { uv_async_send(&earlier); });
  }
  void set_alarm() {
    uv_timer_stop(&alarm);
    const auto due = timer.next_due();
    if (!due) return;
    const auto wait = std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(*due - timer.now()));
    uv_update_time(loop);  // otherwise the wait would count from the start of this loop iteration
    uv_timer_start(&alarm, on_alarm, static_cast<std::uint64_t>(wait.count()), 0);
  }
  static void on_alarm(uv_timer_t* h) {
    auto* const driver = static_cast<uv_driver*>(h->data);
    driver->timer.poll();
    driver->set_alarm();
  }
  void close() {  // the loop must run once more to close the handles
    timer.on_earlier(nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&alarm), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&earlier), nullptr);
  }
};

/// A loop for one test, which counts its iterations. When it is destroyed, no handle may be open.
struct counted_loop {
  uv_loop_t loop;
  uv_check_t each_turn;
  int turns = 0;
  counted_loop() {
    REQUIRE(uv_loop_init(&loop) == 0);
    each_turn.data = this;
    uv_check_init(&loop, &each_turn);
    uv_check_start(&each_turn, [](uv_check_t* h) { ++static_cast<counted_loop*>(h->data)->turns; });
    uv_unref(reinterpret_cast<uv_handle_t*>(&each_turn));
  }
  ~counted_loop() {
    uv_close(reinterpret_cast<uv_handle_t*>(&each_turn), nullptr);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(uv_loop_close(&loop) == 0);
  }
};

TEST_CASE("libuv runs due timers, never early, and does not spin until then") {
  counted_loop own;
  uv_driver driver(&own.loop);
  int runs = 0, early = 0;
  driver.timer.schedule(rondo::every(7300us).times(5), [&](const rondo::firing& f) {
    if (rondo::scheduler::clock::now() < f.due) ++early;
    if (++runs == 5) driver.close();
  });
  uv_run(&own.loop, UV_RUN_DEFAULT);
  CHECK(runs == 5);
  CHECK(early == 0);
  // One or two iterations for each run: libuv counts whole milliseconds from the last iteration, and may wake too
  // early.
  CHECK(own.turns < 50);
}

TEST_CASE("libuv is woken when another thread schedules a timer") {
  counted_loop own;
  uv_driver driver(&own.loop);
  driver.timer.schedule_after(1h, [] {});
  int runs = 0;
  std::thread other([&] {
    for (int i = 0; i != 100; ++i)
      driver.timer.schedule_after(0s, [&] {
        if (++runs == 100) driver.close();
      });
  });
  uv_run(&own.loop, UV_RUN_DEFAULT);
  other.join();
  CHECK(runs == 100);
}

#ifdef __linux__
TEST_CASE("libuv watches a descriptor") {
  counted_loop own;
  uv_loop_t* const loop = &own.loop;
  int runs = 0;
  rondo::polled_timer timer;
  rondo::event_fd due(timer);
  uv_poll_t watcher;
  watcher.data = &due;
  uv_poll_init(loop, &watcher, due.native_handle());
  uv_poll_start(&watcher, UV_READABLE,
                [](uv_poll_t* w, int, int) { static_cast<rondo::event_fd*>(w->data)->run_due(); });

  timer.schedule(rondo::every(1ms).times(5), [&] {
    if (++runs == 5) uv_close(reinterpret_cast<uv_handle_t*>(&watcher), nullptr);
  });
  uv_run(loop, UV_RUN_DEFAULT);
  CHECK(runs == 5);
}
#endif

}  // namespace readme_libuv_loop
