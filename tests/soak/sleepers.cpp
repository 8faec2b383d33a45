#include <rondo/coroutine.hpp>

#include "detached.hpp"
#include "one_shot.hpp"
#include "producers.hpp"

namespace soak {

namespace {

#ifdef __cpp_lib_jthread
using std::stop_source;
using std::stop_token;
#else
/// Without stop tokens, sleeps cannot be asked to stop. They end when they notice that the load is over.
struct stop_token {
  bool stop_requested() const { return false; }
};
struct stop_source {
  stop_token get_token() const { return {}; }
  void request_stop() const {}
};
#endif

struct asleep {
  explicit asleep(account& a) : books(a) { ++books.sleeping; }
  ~asleep() { --books.sleeping; }
  asleep(const asleep&) = delete;
  asleep& operator=(const asleep&) = delete;
  account& books;
};

void check_sleep(account& books, bool slept, rondo::time_point until, const stop_token& token) {
  if (slept) {
    ++books.scheduled;
    ++books.ran;
  } else {
    ++books.unsure;  // the request to stop came before or after a timer was scheduled
  }
  always().check(invariant::sleeps_to_the_end, slept ? clock::now() >= until : token.stop_requested());
}

/// Sleeps a few times, unless it is stopped.
rondo::test::detached sleep_again_and_again(station& s, dice chance, stop_token token) {
  const asleep here(s.books());
  try {
    for (auto times = chance.below(20); times != 0; --times) {
      const auto until = from_now(chance.up_to(20ms));
#ifdef __cpp_lib_jthread
      const bool slept = co_await rondo::sleep_until(s.timers(), until, token);
#else
      co_await rondo::sleep_until(s.timers(), until);
      const bool slept = true;
#endif
      check_sleep(s.books(), slept, until, token);
      if (!slept) break;
    }
  } catch (const rondo::capacity_error&) {
  } catch (const rondo::stopped_error&) {
    ++s.books().unsure;  // nothing was scheduled, or the task was destroyed without a run
  }
}

}  // namespace

void sleepers(station& s, dice chance, const orders& o) {
  while (!o.over) {
    stop_source stop;
    for (std::size_t i = 0; i != o.batch; ++i)
      sleep_again_and_again(s, chance.split(), stop.get_token()).start();
    for (int rests = 0; rests != 20 && !o.over; ++rests) o.rest();
    if (chance.percent(20)) stop.request_stop();
  }
  // Sleepers that were not asked to stop end soon as well. If their scheduler was stopped, they end with it.
  while (s.books().sleeping != 0 && !s.books().ending) o.rest();
}

}  // namespace soak
