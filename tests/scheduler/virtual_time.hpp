// Shared by the tests on virtual time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/manual_timer.hpp>

#include "adds_up.hpp"

namespace doctest {

template <class Rep, class Period>
struct StringMaker<std::chrono::duration<Rep, Period>> {
  static String convert(std::chrono::duration<Rep, Period> d) {
    return (std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()) + " ns").c_str();
  }
};

template <>
struct StringMaker<rondo::time_point> {
  static String convert(rondo::time_point t) { return toString(t.time_since_epoch()); }
};

template <>
struct StringMaker<std::optional<rondo::time_point>> {
  static String convert(const std::optional<rondo::time_point>& t) {
    return t ? toString(*t) : String("no time");
  }
};

}  // namespace doctest

namespace rondo::test {

using namespace std::chrono_literals;

/// A moment of a timer that starts at the epoch.
constexpr time_point at(duration since_start) { return time_point(since_start); }

inline duration since_epoch(const scheduler& s) { return s.now().time_since_epoch(); }

/// Records what happened, in order, as one string: "a b c".
class journal {
 public:
  void add(const std::string& what) {
    if (!text_.empty()) text_ += ' ';
    text_ += what;
  }
  /// A task that adds `what`.
  auto noting(std::string what) {
    return [this, what = std::move(what)] { add(what); };
  }
  /// What happened since the last call.
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

inline auto doing_nothing() {
  return [] {};
}

inline auto counting(int& runs) {
  return [&runs] { ++runs; };
}

inline auto recording(std::vector<firing>& runs) {
  return [&runs](const firing& f) { runs.push_back(f); };
}

}  // namespace rondo::test
