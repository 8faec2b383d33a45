// An epoll loop for tests of descriptors.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <cstdint>

#include "threads/patience.hpp"

namespace rondo::test {

/// Watches one descriptor for reading.
class epoll {
 public:
  explicit epoll(int fd, std::uint32_t flags = 0) : number_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event wanted{};
    wanted.events = EPOLLIN | flags;
    REQUIRE(::epoll_ctl(number_, EPOLL_CTL_ADD, fd, &wanted) == 0);
  }
  ~epoll() { ::close(number_); }
  epoll(const epoll&) = delete;
  epoll& operator=(const epoll&) = delete;

  /// Whether the descriptor is readable now.
  bool ready() const { return wait_ms(0); }
  /// Sleeps until it is readable. Returns false if that takes too long.
  bool wait() const { return wait_ms(static_cast<int>(std::chrono::milliseconds(patience).count())); }

 private:
  bool wait_ms(int limit) const {
    epoll_event event{};
    return ::epoll_wait(number_, &event, 1, limit) == 1;
  }

  const int number_;
};

}  // namespace rondo::test
