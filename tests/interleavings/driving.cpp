// The loop of the driver thread: how it sleeps and is woken. Time passes only while all threads sleep, so a lost
// wake-up shows as a late run, or as a thread that waits forever.
#include "interleavings/stage.hpp"

#include <string>

namespace interleavings_driving {

using namespace rondo;
using namespace rondo::test;

/// A driver thread and `others`, with that kind of alarm.
template <class Alarm>
std::function<scenario()> driven(std::function<void(stage_with<Alarm>&)> prepare,
                                 std::vector<std::function<void(stage_with<Alarm>&)>> others) {
  using stage_type = stage_with<Alarm>;
  return [=] {
    const auto s = std::make_shared<stage_type>(rondo::options{.buckets = 2}, stage_type::tasks_run::inline_,
                                                stage_type::driver::thread);
    s->in_time = true;
    prepare(*s);
    scenario what;
    what.threads.push_back({"driver", [s] { s->core().drive(); }});
    for (const auto& act : others) what.threads.push_back({"user", [s, act] { act(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

using real_alarm = rondo::detail::alarm<explored>;
using real = stage_with<real_alarm>;

void nothing(real&) {}
void one_is_pending(real& s) { s.add(5ms); }
void stop(real& s) { s.stop(); }

/// Schedules timer i, waits for its run, and then stops the scheduler.
template <class Stage>
void schedule_and_await(Stage& s, std::size_t i, duration due) {
  s.add(due);
  s.await_run(i);
  s.stop();
}

TEST_CASE("the driver and schedule") {
  for (const duration due : {duration(0ms), duration(1ms), duration(2ms)}) {
    check_every_schedule(driven<real_alarm>(nothing, {[=](real& s) { schedule_and_await(s, 0, due); }}));
    check_every_schedule(
        driven<real_alarm>(one_is_pending, {[=](real& s) { schedule_and_await(s, 1, due); }}));
  }
}

TEST_CASE("the driver and reschedule") {
  for (const duration to : {duration(0ms), duration(2ms), duration(9ms)})
    check_every_schedule(driven<real_alarm>(one_is_pending, {[=](real& s) {
                                              s.move(0, to);
                                              s.await_run(0);
                                              s.stop();
                                            }}));
}

TEST_CASE("the driver, cancel and schedule") {
  check_every_schedule(driven<real_alarm>(one_is_pending, {[](real& s) {
                                            s.cancel(0);
                                            schedule_and_await(s, 1, 6ms);
                                          }}));
}

TEST_CASE("the driver and cancel_and_wait") {
  check_every_schedule(driven<real_alarm>([](real& s) { s.add(0ms); }, {[](real& s) {
                                            s.cancel_and_wait(0);
                                            s.stop();
                                          }}));
}

TEST_CASE("the driver and two threads that schedule") {
  check_every_schedule(driven<real_alarm>(nothing, {[](real& s) {
                                                      s.add(2ms);
                                                      s.await_run(0);
                                                    },
                                                    [](real& s) {
                                                      s.add(1ms);
                                                      s.await_run(1);
                                                      s.await_run(0);
                                                      s.stop();
                                                    }}),
                       few);
}

TEST_CASE("the driver and stop") {
  check_every_schedule(driven<real_alarm>(nothing, {stop}));
  check_every_schedule(driven<real_alarm>(one_is_pending, {stop}));
  check_every_schedule(driven<real_alarm>(one_is_pending, {stop, stop}), few);
  check_every_schedule(driven<real_alarm>(one_is_pending, {stop, [](real& s) { s.add(0ms); }}), few);
}

TEST_CASE("the driver and destruction") {
  check_every_schedule(driven<real_alarm>(one_is_pending, {[](real& s) { s.retire(); }}));
}

TEST_CASE("the driver and drain") {
  const auto drain = [](real& s) { expect(s.core().drain(1h), "all that was pending has run"); };
  check_every_schedule(driven<real_alarm>(one_is_pending, {drain}));
  check_every_schedule(driven<real_alarm>(one_is_pending, {drain, [](real& s) { s.cancel(0); }}), few);
  check_every_schedule(driven<real_alarm>(one_is_pending, {drain, drain}), few);
}

/// Whether the explorer notices that the alarm is faulty.
template <class Alarm>
bool is_found_out() {
  using stage_type = stage_with<Alarm>;
  const auto e = explore_and_tell(
      driven<Alarm>([](stage_type&) {}, {[](stage_type& s) { schedule_and_await(s, 0, 1ms); }}));
  MESSAGE(e.failure.substr(0, e.failure.find('\n')));
  return !e.failure.empty();
}

struct without_notify : explored {
  struct condition : explored_condition {
    void notify_one() {}
  };
};

struct without_lock : explored {
  struct waiting_mutex : explored_mutex {
    void lock() {
      explored_mutex::lock();
      explored_mutex::unlock();
    }
  };
};

/// Forgets an alarm that was set while the driver checked what is due.
struct resetting_after_the_look : real_alarm {
  void reset() noexcept {}
  void wait_until(std::optional<rondo::time_point> t, rondo::time_point now) {
    real_alarm::reset();
    real_alarm::wait_until(t, now);
  }
};

TEST_CASE("an alarm that loses a wake-up is detected") {
  CHECK(is_found_out<rondo::detail::alarm<without_notify>>());
  CHECK(is_found_out<rondo::detail::alarm<without_lock>>());
  CHECK(is_found_out<resetting_after_the_look>());
}

}  // namespace interleavings_driving
