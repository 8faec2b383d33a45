// README's loop around epoll.
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>

#include <doctest/doctest.h>
#include <rondo/event_fd.hpp>

namespace {

using namespace std::chrono_literals;

TEST_CASE("README: a loop of one's own around epoll") {
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
      if (events[i].data.fd == due.native_handle())
        due.run_due();
      else
        handle(events[i]);
  }

  ::close(epoll);
  CHECK(ticks >= 1);
  CHECK(others == 0);
}

}  // namespace
