// An owner for a file descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace http_timeouts {

[[noreturn]] inline void fail(const char* call) {
  throw std::system_error(errno, std::system_category(), call);
}

class descriptor {
 public:
  descriptor() noexcept = default;
  // `number`: what `call` has returned.
  descriptor(int number, const char* call) : number_(number) {
    if (number < 0) fail(call);
  }
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  int release() noexcept { return std::exchange(number_, -1); }
  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace http_timeouts
