// The loop of the driver thread: how it sleeps and is woken. Time passes only while all threads sleep, so a lost
// wake-up shows as a late run, or as a thread that waits forever.
#include "interleavings/stage.hpp"

#include <string>

namespace interleavings_driving {

using namespace rondo;
using namespace rondo::test;

using act = std::function<void(stage&)>;
using loop = std::function<void(detail::core&, detail::alarm&)>;

/// A driver thread and `others`.
std::function<scenario()> driven(act prepare, std::vector<act> others, loop drive = detail::drive) {
  return [=] {
    const auto s = std::make_shared<stage>(rondo::options{.buckets = 2}, stage::tasks_run::inline_,
                                           stage::driver::thread);
    s->in_time = true;
    prepare(*s);
    scenario what;
    what.threads.push_back({"driver", [s, drive] { s->core().drive(drive); }});
    for (const auto& other : others) what.threads.push_back({"user", [s, other] { other(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

void nothing(stage&) {}
void one_is_pending(stage& s) { s.add(5ms); }
void stop(stage& s) { s.stop(); }

/// Schedules timer i, waits for its run, and then stops the scheduler.
void schedule_and_await(stage& s, std::size_t i, duration due) {
  s.add(due);
  s.await_run(i);
  s.stop();
}

/// A core that is polled by hand, as a polled_timer's.
class polled_by_hand final : public detail::core {
 public:
  polled_by_hand() : core({.buckets = 2}, at(0s), kind_of_time::virtual_time) {}
  time_point now() const noexcept override { return virtual_time::now(); }
  std::size_t pass() { return run_pass(time_point::max(), unlimited); }

  explored_atomic<bool> told{false};

 private:
  void next_due_moved_earlier() noexcept override { told.store(true); }
};

TEST_CASE("who reads next_due() while another thread polls sleeps past no timer") {
  check_small([] {
    const auto s = std::make_shared<polled_by_hand>();
    schedule_on(*s, every(2ms).first_after(1ms), s->now(), [] {});
    schedule_on(*s, at(9ms), s->now(), [] {});
    virtual_time::move_to(at(1ms));
    const auto read = std::make_shared<std::optional<time_point>>();
    scenario what;
    what.threads = {{"polls", [s] { s->pass(); }}, {"reads", [=] {
                                                      s->told.store(false);
                                                      *read = s->next_due();
                                                    }}};
    what.check = [=] {
      expect(s->told.load() || *read <= s->next_due(), "who sleeps too long is told");
      s->stop();
      s->retire();
    };
    return what;
  });
}

TEST_CASE("the driver and schedule") {
  for (const duration due : {duration(0ms), duration(1ms), duration(2ms)}) {
    check_every_schedule(driven(nothing, {[=](stage& s) { schedule_and_await(s, 0, due); }}));
    check_every_schedule(driven(one_is_pending, {[=](stage& s) { schedule_and_await(s, 1, due); }}));
  }
}

TEST_CASE("the driver and reschedule") {
  for (const duration to : {duration(0ms), duration(2ms), duration(9ms)})
    check_every_schedule(driven(one_is_pending, {[=](stage& s) {
                                  s.move(0, to);
                                  s.await_run(0);
                                  s.stop();
                                }}));
}

TEST_CASE("the driver, cancel and schedule") {
  check_every_schedule(driven(one_is_pending, {[](stage& s) {
                                s.cancel(0);
                                schedule_and_await(s, 1, 6ms);
                              }}));
  check_every_schedule(driven([](stage& s) { s.add_plain(5ms); }, {[](stage& s) {
                                s.cancel(0);
                                s.add_plain(6ms);
                                s.await_run(1);
                                s.stop();
                              }}));
}

TEST_CASE("the driver and cancel_and_wait") {
  check_every_schedule(driven([](stage& s) { s.add(0ms); }, {[](stage& s) {
                                s.cancel_and_wait(0);
                                s.stop();
                              }}));
}

TEST_CASE("the driver and two threads that schedule") {
  check_every_schedule(driven(nothing, {[](stage& s) {
                                          s.add(2ms);
                                          s.await_run(0);
                                        },
                                        [](stage& s) {
                                          s.add(1ms);
                                          s.await_run(1);
                                          s.await_run(0);
                                          s.stop();
                                        }}),
                       few);
}

TEST_CASE("the driver and stop") {
  check_every_schedule(driven(nothing, {stop}));
  check_every_schedule(driven(one_is_pending, {stop}));
  check_every_schedule(driven(one_is_pending, {stop, stop}), few);
  check_every_schedule(driven(one_is_pending, {stop, [](stage& s) { s.add(0ms); }}), few);
}

TEST_CASE("the driver and destruction") {
  check_every_schedule(driven(one_is_pending, {[](stage& s) { s.retire(); }}));
}

TEST_CASE("the driver and drain") {
  const auto drain = [](stage& s) {
    expect(s.core().drain(1h), "all that was pending has run");
    expect(virtual_time::now() <= at(5ms), "drain() returns as soon as the last timer has run");
  };
  check_every_schedule(driven(one_is_pending, {drain}));
  check_every_schedule(driven(one_is_pending, {drain, [](stage& s) { s.cancel(0); }}), few);
  check_every_schedule(driven(one_is_pending, {drain, drain}), few);
}

/// Whether the explorer notices that the driver sleeps too long.
bool is_found_out(const loop& drive = detail::drive) {
  const auto e = explore_and_tell(driven(nothing, {[](stage& s) { schedule_and_await(s, 0, 1ms); }}, drive));
  MESSAGE(e.failure.substr(0, e.failure.find('\n')));
  return !e.failure.empty();
}

/// Forgets an alarm that was set while the driver checked what is due.
void reset_after_the_look(detail::core& core, detail::alarm& bell) {
  while (!core.stopped()) {
    core.run_pass(time_point::max(), unlimited);
    const auto due = core.next_due();
    if (core.stopped()) break;
    const time_point reading = core.now();
    bell.wait_until(reading, reading);
    bell.wait_until(due, reading);
  }
}

TEST_CASE("an alarm that loses a wake-up is detected") {
  planted.not_notified = true;
  CHECK(is_found_out());
  planted = {.not_locked = lock_rank::waiting};
  CHECK(is_found_out());
  planted = {};
  CHECK(is_found_out(reset_after_the_look));
}

}  // namespace interleavings_driving
