// Soak: everything that Rondo can do, at the same time and under load, for any length of time.
//
//     soak --seconds 600 --seed 1 --load medium
//
// Four schedulers live as long as the program, and others are created and ended all the time. From time to time the
// load ends. Then nothing may be left, and the program's own account of every timer is compared with the scheduler's.
// The invariants of each single run or call are checked when it happens. The exit code is 1 if an invariant was
// violated.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "balance.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "producers.hpp"
#include "report.hpp"

namespace {

using namespace soak;

class soaking {
 public:
  explicit soaking(const wishes& w)
      : chance_(w.seed), batch_(w.batch), length_(rondo::saturate(std::chrono::duration<double>(w.seconds))) {
    for (const kind k : kinds) stations_.push_back(std::make_unique<station>(k, chance_()));
  }

  void run() {
    const auto shift = std::clamp<rondo::duration>(length_ / 8, 400ms, 5s);
    auto next_line = 10s;
    while (passed() < length_) {
      work(std::min(shift, length_ - passed()));
      rest();
      if (passed() < next_line) continue;
      print_progress();
      next_line += 10s;
    }
    memory_.check();
  }

  void report() {
    std::uint64_t scheduled = 0, fired = 0;
    for (const auto& s : stations_) {
      print_station(*s);
      scheduled += s->timers().stats().scheduled;
      fired += s->timers().stats().fired;
    }
    std::printf("in all\n  timers     %" PRIu64 " scheduled\n  runs       %" PRIu64
                " fired\n  schedulers %" PRIu64 " more made and ended under load\n",
                scheduled, fired, brief_.load());
    print_process(seconds(passed()), memory_);
    print_invariants();
  }

 private:
  static double seconds(rondo::duration d) { return std::chrono::duration<double>(d).count(); }
  rondo::duration passed() const { return clock::now() - start_; }

  void work(rondo::duration d) {
    std::atomic<bool> over{false};
    const orders o{over, batch_};
    std::vector<std::thread> threads;
    for (const auto& s : stations_) {
      for (const auto producer : {request_timeouts, periodic_jobs, sessions, owners, sleepers})
        threads.emplace_back(producer, std::ref(*s), chance_.split(), std::cref(o));
      threads.emplace_back(onlooker, std::ref(*s), std::cref(o));
    }
    threads.emplace_back(brief_stations, chance_.split(), std::cref(o), std::ref(brief_));
    std::this_thread::sleep_for(d);
    over = true;
    for (std::thread& t : threads) t.join();
  }

  void rest() {
    for (const auto& s : stations_) check_at_rest(*s);
    memory_.look(seconds(passed()) / seconds(length_));
  }

  void print_progress() const {
    std::uint64_t fired = 0;
    for (const auto& s : stations_) fired += s->timers().stats().fired;
    std::printf("%6.0f s: %" PRIu64 " fired, %" PRIu64 " checks, %" PRIu64 " violated, %.1f MiB\n",
                seconds(passed()), fired, always().checked(), always().violated(), memory_.last());
    std::fflush(stdout);
  }

  dice chance_;
  const std::size_t batch_;
  const rondo::duration length_;
  const rondo::time_point start_ = clock::now();
  std::vector<std::unique_ptr<station>> stations_;
  counter brief_{0};
  memory memory_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto w = read_options(argc, argv);
  if (!w) return 2;
  std::printf("soak: %g s, seed %" PRIu64 "\n", w->seconds, w->seed);
  std::fflush(stdout);
  soaking all(*w);
  all.run();
  all.report();
  return always().violated() == 0 ? 0 : 1;
}
