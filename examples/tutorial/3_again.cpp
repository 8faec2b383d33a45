// Recurrences on virtual time: the program takes no time, and its output is always the same.
#include <iostream>

#include <rondo/manual_timer.hpp>

int main() {
  using namespace std::chrono_literals;
  rondo::manual_timer time;  // in production: a rondo::timer
  const auto say = [&](const char* what) {
    return [&time, what](const rondo::firing& f) {
      std::cout << time.now().time_since_epoch() / 1ms << " ms: " << what << ' ' << f.run << '\n';
    };
  };

  time.schedule_every(400ms, say("beat"));
  time.schedule(rondo::every(300ms).first_after(50ms).times(2), say("sample"));
  time.schedule(rondo::backoff(100ms, 2, 30s), say("attempt"));

  time.advance(800ms);
}
