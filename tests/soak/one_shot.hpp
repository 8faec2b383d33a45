// Timers that run once.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "station.hpp"

namespace soak {

/// Keeps a processor busy.
inline void work_for(rondo::duration d) {
  for (const auto end = clock::now() + d; clock::now() < end;) {
  }
}

/// The earliest due time of a timer that is about to be scheduled with that delay.
inline rondo::time_point from_now(rondo::duration delay) {
  return rondo::saturating_add(clock::now(), delay);
}

class one_shot;
struct scheduled_one_shot {
  rondo::timer_id id;
  std::shared_ptr<one_shot> what;
};

/// Too long for a string's internal buffer.
inline constexpr const char* a_name = "a timer that has a name, which takes memory";

/// One in a hundred throws, some take long, some schedule another.
class one_shot : public life {
 public:
  one_shot(station& s, rondo::duration delay, dice& chance)
      : life(from_now(delay)), station_(s), nature_(static_cast<unsigned>(chance.below(1000))) {}

  void run(const rondo::firing& f);

  /// Schedules a timer on `timers`, the station's scheduler or a scope on it. `what` is null if the timer was refused.
  template <class Timers>
  static scheduled_one_shot schedule(Timers& timers, station& s, rondo::duration delay, dice& chance) {
    scheduled_one_shot made{{}, std::make_shared<one_shot>(s, delay, chance)};
    watched<one_shot> callable(s.books(), made.what);
    const bool is_large = chance.percent(10);  // more than a task holds without an allocation
    const std::uint64_t way = chance.below(10);
    const auto due = rondo::time_point(rondo::duration(made.what->earliest));
    const bool is_accepted = booked(s.books(), [&] {
      rondo::task work;
      if (is_large)
        work = [w = std::move(callable), ballast = std::array<std::byte, 100>{}](
                   const rondo::firing& f) mutable { w(f), static_cast<void>(ballast); };
      else
        work = std::move(callable);
      if (way < 5)
        made.id = timers.schedule_at(due, std::move(work));
      else if (way < 9)
        made.id = timers.schedule_after(delay, std::move(work));
      else if (chance.percent(50))
        made.id = timers.schedule_after(delay, std::move(work), s.elsewhere());
      else
        made.id = timers.schedule_after(delay, std::move(work), {.name = a_name});
    });
    if (!is_accepted) made.what.reset();
    return made;
  }

  /// Both the old and the new due time are valid until the call has returned.
  template <class Timers>
  static void move(Timers& timers, const scheduled_one_shot& timer, rondo::duration delay) {
    life& what = *timer.what;
    const clock::rep old = what.earliest;
    const clock::rep moved = from_now(delay).time_since_epoch().count();
    if (moved < old) what.earliest = moved;
    const bool is_moved = timers.reschedule_after(timer.id, delay);
    if (is_moved) what.earliest = moved;
  }

 private:
  station& station_;
  const unsigned nature_;
  std::atomic<bool> has_run_{false};
};

inline void one_shot::run(const rondo::firing& f) {
  always().check(invariant::runs_once, !has_run_.exchange(true) && f.run == 1 && f.missed == 0);
  always().check(invariant::names, f.name.empty() || f.name == a_name, f.name);
  if (nature_ < 10) {
    ++station_.books().threw;
    throw std::runtime_error("a task that throws");
  }
  if (nature_ < 12) return work_for(2ms);
  if (nature_ >= 100) return;
  dice chance(static_cast<std::uint64_t>(f.due.time_since_epoch().count()));
  schedule(station_.timers(), station_, chance.up_to(3ms), chance);
}

}  // namespace soak
