#include <vector>

#include "one_shot.hpp"
#include "producers.hpp"

namespace soak {

namespace {

/// Delays of request timeouts: most would fire long after the answer, some soon, some never, some at once.
rondo::duration draw_delay(dice& chance) {
  const std::uint64_t share = chance.below(100);
  if (share < 50) return 30s + chance.up_to(1s);
  if (share < 90) return chance.up_to(30ms);
  if (share < 95) return chance.up_to(500ms);
  if (share < 98) return -chance.up_to(5ms);
  return share < 99 ? 24h : rondo::duration::max();
}

bool ends_by_itself(const one_shot& what) {
  return rondo::time_point(rondo::duration(what.earliest)) <= from_now(1s);
}

void answer(station& s, const scheduled_one_shot& timer, dice& chance) {
  const bool waits = chance.percent(10);
  const auto said = waits ? s.timers().cancel_and_wait(timer.id) : s.timers().cancel(timer.id);
  check_cancel(s.books(), *timer.what, said, waits);
}

}  // namespace

void request_timeouts(station& s, dice chance, const orders& o) {
  std::vector<scheduled_one_shot> open(256);
  while (!o.over) {
    for (std::size_t i = 0; i != o.batch; ++i) {
      scheduled_one_shot& request = open[chance.below(open.size())];
      if (request.what != nullptr && chance.percent(15)) {
        one_shot::move(s.timers(), request, draw_delay(chance));
        continue;
      }
      const bool is_left_to_fire =
          request.what == nullptr || (chance.percent(30) && ends_by_itself(*request.what));
      if (!is_left_to_fire) answer(s, request, chance);
      request = one_shot::schedule(s.timers(), s, draw_delay(chance), chance);
    }
    o.rest();
  }
  for (const scheduled_one_shot& request : open)
    if (request.what != nullptr) answer(s, request, chance);
}

}  // namespace soak
