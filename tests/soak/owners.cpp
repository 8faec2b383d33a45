#include <optional>
#include <vector>

#include <rondo/timer_scope.hpp>

#include "periodic.hpp"
#include "producers.hpp"

namespace soak {

namespace {

void live_for_a_moment(station& s, dice& chance, const orders& o) {
  std::vector<std::shared_ptr<life>> all;
  {
    rondo::timer_scope scope(s.timers());
    for (std::size_t i = 0; i != o.batch / 2; ++i) {
      const auto made = one_shot::schedule(scope, s, chance.up_to(10ms), chance);
      if (made.what == nullptr) continue;
      all.push_back(made.what);
      if (chance.percent(20)) one_shot::move(scope, made, chance.up_to(10ms));
      if (chance.percent(20)) check_cancel(s.books(), *made.what, scope.cancel(made.id));
    }
    const pattern p = draw_pattern(chance);
    all.push_back(std::make_shared<periodic>(s, p, chance()));
    const auto last = std::static_pointer_cast<periodic>(all.back());
    booked(s.books(), [&] { scope.schedule(p.when, watched<periodic>(s.books(), last)); });
    o.rest();
    if (chance.percent(20)) scope.cancel_all();
  }
  for (const auto& each : all) {
    const bool is_over = each->destroyed || s.books().ending;  // timers from stop() are not destroyed
    always().check(invariant::scope_ends_all, is_over && each->running == 0, "on", s.name());
    each->ruled_out = true;
  }
}

}  // namespace

void owners(station& s, dice chance, const orders& o) {
  while (!o.over) {
    live_for_a_moment(s, chance, o);
    o.rest();
  }
}

}  // namespace soak
