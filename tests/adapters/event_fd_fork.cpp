// A child of fork() has a copy of a polled_timer, which works on its own, and of its event_fd, which does not.
#include <sys/timerfd.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include <rondo/event_fd.hpp>

#include "adapters/counted_settime.hpp"
#include "adapters/epoll.hpp"
#include "threads/child.hpp"

namespace adapters_event_fd_fork {

using namespace rondo;
using namespace rondo::test;

/// The time until the descriptor becomes readable by its timer; 0 if it is not armed.
std::chrono::seconds armed_for(const event_fd& fd) {
  itimerspec left{};
  REQUIRE(::timerfd_gettime(fd.native_handle(), &left) == 0);
  return std::chrono::seconds(left.it_value.tv_sec);
}

TEST_CASE("whatever a child does with its copy of an event_fd, the parent's stays as it was") {
  polled_timer timer;
  std::optional<event_fd> due(std::in_place, timer);
  const epoll loop(due->native_handle());
  timer.schedule_after(1h, [] {});
  std::unique_ptr<const raising_refused> refused;
  SUBCASE("where the kernel can make it readable") {}
  SUBCASE("where it has to be armed for that") { refused = std::make_unique<raising_refused>(); }
  CHECK(in_child([&] {
          settime_calls();
          raise_calls();
          int runs = 0;
          timer.schedule_after(1min, [&] { ++runs; });
          timer.schedule_after(0s, [&] { ++runs; });
          timer.schedule_after(-1s, [&] { ++runs; });
          const bool one = due->run_due(1) == 1, another = due->run_due() == 1 && runs == 2;
          const bool all = timer.stop().size() == 2 && due->run_due() == 0;
          due.reset();
          return first_wrong({one, another, all, settime_calls() == 0, raise_calls() == 0});
        }) == "");
  CHECK_FALSE(loop.ready());
  CHECK(armed_for(*due) > 30min);
  timer.schedule_after(0s, [] {});
  CHECK(loop.ready());
  CHECK(due->run_due() == 1);
}

TEST_CASE("a child that runs due timers leaves the parent's descriptor readable") {
  polled_timer timer;
  event_fd due(timer);
  const epoll loop(due.native_handle());
  int runs = 0;
  timer.schedule_after(-1s, [&] { ++runs; });
  CHECK(in_child([&] { return first_wrong({due.run_due() == 1, due.run_due() == 0, runs == 1}); }) == "");
  CHECK(runs == 0);
  CHECK(loop.ready());
  CHECK(due.run_due() == 1);
  CHECK_FALSE(loop.ready());
}

TEST_CASE("a child may replace its copy with a new event_fd, of which its own child has a copy again") {
  polled_timer timer;
  std::optional<event_fd> due(std::in_place, timer);
  const epoll loop(due->native_handle());
  int runs = 0;
  timer.schedule_after(-1s, [&] { ++runs; });
  timer.schedule_after(1h, [&] { ++runs; });
  CHECK(due->run_due() == 1);
  CHECK(in_child([&] {
          bool refused = false;
          try {
            event_fd second(timer);
          } catch (const std::logic_error&) {
            refused = true;
          }
          due.reset();
          due.emplace(timer);
          const epoll own(due->native_handle());
          const bool quiet = !own.ready();
          timer.schedule_after(0s, [&] { ++runs; });
          const bool told = own.ready();
          const bool grandchild = in_child([&] {
                                    const bool ran = due->run_due() == 1;
                                    due.reset();
                                    return first_wrong({ran});
                                  }).empty();
          return first_wrong(
              {refused, quiet, told, grandchild, own.ready(), due->run_due() == 1, !own.ready(), runs == 2});
        }) == "");
  CHECK_FALSE(loop.ready());
  CHECK(armed_for(*due) > 30min);
}

}  // namespace adapters_event_fd_fork
