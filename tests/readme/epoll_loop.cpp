// The listings of event_loops.md about epoll.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include <doctest/doctest.h>
#include <rondo/event_fd.hpp>

namespace readme_epoll_loop {

using namespace std::chrono_literals;

TEST_CASE("a loop of one's own around epoll") {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  bool running = true;
  int others = 0;
  const auto handle = [&others](const epoll_event&) { ++others; };

  rondo::polled_timer timer;
  rondo::event_fd due(timer);
  epoll_event watched{.events = EPOLLIN, .data = {.fd = due.native_handle()}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, due.native_handle(), &watched);

  int ticks = 0;
  timer.schedule_every(1ms, [&] { ++ticks; });
  timer.schedule_after(20ms, [&] { running = false; });

  epoll_event events[64];
  while (running) {
    const int ready = ::epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; ++i)
      if (events[i].data.fd != due.native_handle()) handle(events[i]);
    due.run_due();  // last, as a task may close a descriptor that has an event here
  }

  ::close(epoll);
  CHECK(ticks >= 1);
  CHECK(others == 0);
}

TEST_CASE("a loop that always has other work runs timers in each turn") {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int always_ready = ::eventfd(1, EFD_CLOEXEC);
  bool running = true;
  int others = 0;
  const auto handle = [&others](const epoll_event&) { ++others; };
  rondo::polled_timer timer;
  rondo::event_fd due(timer);
  for (const int watched : {due.native_handle(), always_ready}) {
    epoll_event what{.events = EPOLLIN, .data = {.fd = watched}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, watched, &what);
  }
  int ticks = 0;
  timer.schedule_every(1ms, [&] { ++ticks; });
  timer.schedule_after(20ms, [&] { running = false; });

  epoll_event events[64];
  while (running) {
    const int ready = ::epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < ready; ++i)
      if (events[i].data.fd != due.native_handle()) handle(events[i]);
    due.run_due(100);  // in every iteration, at most 100; the rest follow in the next
  }

  ::close(always_ready);
  ::close(epoll);
  CHECK(ticks >= 1);
  CHECK(others >= 1);
}

}  // namespace readme_epoll_loop
