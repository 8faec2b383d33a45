#include <sstream>

#include "producers.hpp"

namespace soak {

void onlooker(station& s, const orders& o) {
  while (!o.over) {
    std::ostringstream drawing;
    s.timers().dump(drawing);
    static_cast<void>(s.timers().stats());
    static_cast<void>(s.timers().next_due());
    s.listen_again();
    always().check(invariant::limit_exact, s.timers().pending() <= s.limit());
    for (int rests = 0; rests != 10 && !o.over; ++rests) o.rest();
  }
}

}  // namespace soak
