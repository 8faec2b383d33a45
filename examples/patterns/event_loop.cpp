#include <poll.h>

#include <iostream>

#include <rondo/event_fd.hpp>
#include <rondo/polled_timer.hpp>

int main() {
  using namespace std::chrono_literals;
  rondo::polled_timer timer;   // has no thread: this loop drives it
  rondo::event_fd due(timer);  // readable when a timer is due (Linux)
  bool running = true;
  timer.schedule(rondo::every(50ms).times(3),
                 [](const rondo::firing& f) { std::cout << "tick " << f.run << '\n'; });
  timer.schedule_after(300ms, [&] { running = false; });

  pollfd watched[] = {{due.native_handle(), POLLIN, 0}};  // and your sockets
  while (running) {
    ::poll(watched, 1, -1);
    if (watched[0].revents & POLLIN) due.run_due();
  }
}
