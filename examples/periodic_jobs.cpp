// Short periodic jobs of every kind, and when each of them ran.
//
// Runs on virtual time, so the output is always the same. With --real it takes two seconds of real time.
#include <cmath>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <thread>

#include <rondo/rondo.hpp>

using namespace std::chrono_literals;

/// Schedules the jobs; `work_for` makes a task take a while.
void schedule_jobs(rondo::scheduler& s, std::function<void(rondo::duration)> work_for) {
  const auto start = s.now();
  const auto report = [start, &s](const char* name) {
    return [=, &s](const rondo::firing& f) {
      const std::chrono::duration<double, std::milli> at = s.now() - start;
      std::cout << std::setw(6) << std::llround(at.count()) << " ms  " << name << " #" << f.run;
      if (f.missed != 0) std::cout << " (missed " << f.missed << ")";
      std::cout << std::endl;
    };
  };
  using rondo::missed_runs;

  s.schedule_every(500ms, report("heartbeat"));
  s.schedule(rondo::every(333'400us).times(3), report("sample, three times"));
  s.schedule(rondo::after_completion(400ms),
             [=, say = report("sync, 400 ms after it has ended")](const rondo::firing& f) {
               say(f);
               work_for(10ms);
             });
  s.schedule(rondo::intervals({100ms, 200ms, 400ms}), report("warm up"));
  s.schedule(rondo::cycle({900ms, 100ms}), report("tick-tock"));
  s.schedule(rondo::backoff(50ms, 3, 1s), report("retry"));
  s.schedule(rondo::every(1s).jitter(0.1, 42), report("report, jittered"));

  // 270 ms of work at 1250 ms hold up the driver. Each timer below chooses what to do about its missed runs.
  s.schedule_after(1250ms, [=] { work_for(270ms); });
  s.schedule(rondo::every(100ms).first_after(1200ms).times(3), report("skips"));
  s.schedule(rondo::every(100ms).first_after(1200ms).times(4).on_missed(missed_runs::burst),
             report("catches up"));
  s.schedule(rondo::every(100ms).first_after(1200ms).times(3).on_missed(missed_runs::delay),
             report("is delayed"));
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--real") == 0) {
    rondo::timer timer;
    schedule_jobs(timer, [](rondo::duration d) { std::this_thread::sleep_for(d); });
    std::this_thread::sleep_for(2s);
  } else {
    rondo::manual_timer time;
    schedule_jobs(time, [&](rondo::duration d) { time.elapse(d); });
    time.advance(2s);
  }
}
