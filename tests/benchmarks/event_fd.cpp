// What an event_fd costs a loop, compared with poll() alone and with arming its timerfd in the past. See README.md.
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>

#include <rondo/event_fd.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace std::chrono_literals;

/// The timer without a descriptor.
class poll_alone {
 public:
  std::size_t run_due(std::size_t limit) { return timer.poll(limit); }
  rondo::polled_timer timer;
};

/// Watches a descriptor as a sleeping loop does.
class epoll {
 public:
  explicit epoll(int descriptor) : number_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(number_, EPOLL_CTL_ADD, descriptor, &wanted);
  }
  ~epoll() { ::close(number_); }
  epoll(const epoll&) = delete;
  epoll& operator=(const epoll&) = delete;

 private:
  const int number_;
};

class watched {
 public:
  std::size_t run_due(std::size_t limit) { return due_.run_due(limit); }
  rondo::polled_timer timer;

 private:
  rondo::event_fd due_{timer};
  const epoll loop_{due_.native_handle()};
};

/// As event_fd worked in 0.1: a timerfd that is armed when the earliest timer changes, and in the past while one is
/// due.
class arming_alone {
 public:
  arming_alone() {
    timer.on_earlier([this] {
      if (!readable()) arm(false);
    });
  }
  ~arming_alone() {
    timer.on_earlier(nullptr);
    ::close(number_);
  }
  arming_alone(const arming_alone&) = delete;
  arming_alone& operator=(const arming_alone&) = delete;

  std::size_t run_due(std::size_t limit) {
    const std::size_t runs = timer.poll(limit);
    arm(readable());
    return runs;
  }
  rondo::polled_timer timer;

 private:
  bool readable() const { return armed_ && *armed_ <= rondo::scheduler::clock::now(); }

  void arm(bool always) {
    const auto earliest = timer.next_due();
    if (!always && earliest == armed_) return;
    itimerspec at{};
    if (earliest) {
      const auto since_boot = std::max(earliest->time_since_epoch(), rondo::duration(1));
      const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
      at.it_value.tv_sec = static_cast<std::time_t>(whole.count());
      at.it_value.tv_nsec = static_cast<long>((since_boot - whole) / 1ns);
    }
    ::timerfd_settime(number_, TFD_TIMER_ABSTIME, &at, nullptr);
    armed_ = earliest;
  }

  const int number_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  std::optional<rondo::time_point> armed_;
  const epoll loop_{number_};
};

/// Passes that run one timer each and always leave work.
template <class Loop>
measure::sample passes_that_leave_work(std::uint64_t passes) {
  Loop loop;
  std::uint64_t runs = 0;
  for (std::uint64_t i = 0; i != passes + 1; ++i) loop.timer.schedule_after(-1h, [&runs] { ++runs; });
  loop.run_due(1);
  const auto start = measure::now();
  for (std::uint64_t i = 1; i != passes; ++i) loop.run_due(1);
  return {measure::per_operation(start, passes - 1), runs};
}

/// A timeout of 30 s is cancelled and set again between passes, with nothing due, so that the earliest timer changes.
template <class Loop>
measure::sample passes_with_another_earliest(std::uint64_t passes) {
  Loop loop;
  std::uint64_t runs = 0;
  auto timeout = loop.timer.schedule_after(30s, [] {});
  const auto start = measure::now();
  for (std::uint64_t i = 0; i != passes; ++i) {
    loop.timer.cancel(timeout);
    timeout = loop.timer.schedule_after(30s + static_cast<std::int64_t>(i + 1) * 2ms, [] {});
    runs += loop.run_due(rondo::unlimited);
  }
  return {measure::per_operation(start, passes), runs + loop.timer.pending()};
}

/// Runs timers that are due at once while a later timer is pending, as in a loop that is handed work.
template <class Loop>
measure::sample due_at_once(std::uint64_t passes) {
  Loop loop;
  std::uint64_t runs = 0;
  loop.timer.schedule_after(1h, [] {});
  const auto start = measure::now();
  for (std::uint64_t i = 0; i != passes; ++i) {
    loop.timer.schedule_after(0s, [&runs] { ++runs; });
    loop.run_due(rondo::unlimited);
  }
  return {measure::per_operation(start, passes), runs};
}

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const std::uint64_t passes = report.small() ? 100 : 50'000;
  report.compare("a pass that leaves work", "ns",
                 {{"arming alone", [=] { return passes_that_leave_work<arming_alone>(passes); }},
                  {"event_fd", [=] { return passes_that_leave_work<watched>(passes); }},
                  {"poll() alone", [=] { return passes_that_leave_work<poll_alone>(passes); }}});
  report.compare("a pass after the earliest timer was replaced by a later one", "ns",
                 {{"arming alone", [=] { return passes_with_another_earliest<arming_alone>(passes); }},
                  {"event_fd", [=] { return passes_with_another_earliest<watched>(passes); }},
                  {"poll() alone", [=] { return passes_with_another_earliest<poll_alone>(passes); }}});
  report.compare("scheduling and running what is due at once", "ns",
                 {{"arming alone", [=] { return due_at_once<arming_alone>(passes); }},
                  {"event_fd", [=] { return due_at_once<watched>(passes); }},
                  {"poll() alone", [=] { return due_at_once<poll_alone>(passes); }}});
  return report.finish();
}
