// For tests of what the library writes to std::cerr.
#pragma once

#include <cstddef>
#include <iostream>
#include <sstream>
#include <string>

namespace rondo::test {

/// Captures what is written to std::cerr during its lifetime.
class captured_cerr {
 public:
  captured_cerr() : old_(std::cerr.rdbuf(buffer_.rdbuf())) {}
  ~captured_cerr() { std::cerr.rdbuf(old_); }
  captured_cerr(const captured_cerr&) = delete;
  captured_cerr& operator=(const captured_cerr&) = delete;
  std::string text() const { return buffer_.str(); }
  std::size_t lines() const {
    std::size_t count = 0;
    for (const char c : buffer_.str()) count += c == '\n';
    return count;
  }

 private:
  std::ostringstream buffer_;
  std::streambuf* old_;
};

}  // namespace rondo::test
