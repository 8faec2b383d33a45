// Ends a thread that waits in poll().
#pragma once

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace cache_refresh {

class stop_event {
 public:
  stop_event() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  }
  ~stop_event() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  stop_event(const stop_event&) = delete;
  stop_event& operator=(const stop_event&) = delete;

  // From now on the descriptor is readable.
  void set() noexcept { static_cast<void>(!::write(ends_[1], "", 1)); }
  int descriptor() const noexcept { return ends_[0]; }

  // Waits for the event or for `other`, at most for the given time (-1: no limit). Returns true if the event was set.
  bool wait(int milliseconds, int other = -1) const noexcept {
    pollfd all[] = {{ends_[0], POLLIN, 0}, {other, POLLIN, 0}};  // poll() ignores a negative descriptor
    ::poll(all, 2, milliseconds);
    return all[0].revents != 0;
  }

 private:
  int ends_[2];
};

}  // namespace cache_refresh
