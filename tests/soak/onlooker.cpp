#include <algorithm>
#include <set>
#include <sstream>

#include "one_shot.hpp"
#include "producers.hpp"

namespace soak {

namespace {

void look_through_list(rondo::scheduler& timers) {
  const auto list = timers.list();
  const auto place = [](const rondo::timer_info& t) { return std::pair(!t.due, t.due); };
  always().check(invariant::list, std::is_sorted(list.begin(), list.end(), [&](const auto& a, const auto& b) {
                   return place(a) < place(b);
                 }));
  std::set<rondo::timer_id> ids;
  for (const rondo::timer_info& t : list) {
    always().check(invariant::list, ids.insert(t.id).second, to_string(t.id));
    always().check(invariant::names, t.name.empty() || t.name == a_name, t.name);
  }
}

}  // namespace

void onlooker(station& s, const orders& o) {
  for (unsigned round = 0; !o.over; ++round) {
    std::ostringstream drawing;
    s.timers().dump(drawing);
    static_cast<void>(s.timers().stats());
    static_cast<void>(s.timers().next_due());
    look_through_list(s.timers());
    if (round % 50 == 0) s.timers().shrink_to_fit();
    s.listen_again();
    // Not compared with the limit: under load, pending() adds up counters that it reads one after another.
    static_cast<void>(s.timers().pending());
    for (int rests = 0; rests != 10 && !o.over; ++rests) o.rest();
  }
}

}  // namespace soak
