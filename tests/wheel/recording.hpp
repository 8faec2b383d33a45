// Timers with names, and a line of text that shows which of them fired.
#pragma once

#include <limits>
#include <string>

#include <rondo/wheel.hpp>

namespace wheel_test {

using rondo::tick_number;

inline constexpr tick_number first_tick = std::numeric_limits<tick_number>::min();
inline constexpr tick_number last_tick = std::numeric_limits<tick_number>::max();

struct timer : rondo::wheel_node {
  explicit timer(const char* n = "") : name(n) {}
  const char* name;
};

using wheel = rondo::wheel<timer>;

/// Records which timers fired, and at which now(): "a@5 b@7".
class record {
 public:
  explicit record(const wheel& w) : wheel_(w) {}

  void operator()(const timer& fired) {
    if (!text_.empty()) text_ += ' ';
    text_ += std::string(fired.name) + '@' + std::to_string(wheel_.now());
  }
  const std::string& text() const { return text_; }

 private:
  const wheel& wheel_;
  std::string text_;
};

/// Advances, and returns the record of the timers that fired.
inline std::string fired(wheel& w, tick_number to, std::size_t limit = rondo::unlimited) {
  record seen(w);
  w.advance(
      to, [&](timer& t) { seen(t); }, limit);
  return seen.text();
}

/// As fired(), but calls `also` for each timer after recording it.
template <class Also>
std::string fired_while(wheel& w, tick_number to, Also&& also) {
  record seen(w);
  w.advance(to, [&](timer& t) {
    seen(t);
    also(t);
  });
  return seen.text();
}

}  // namespace wheel_test
