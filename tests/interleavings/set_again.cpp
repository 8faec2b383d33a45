// Timers that are cancelled and set again, with the same record and in the same slot of the wheel, interleaved with the
// driver and with everything else that looks for timers.
#include "interleavings/stage.hpp"

#include <vector>

namespace interleavings_set_again {

using namespace rondo;
using namespace rondo::test;

/// Cancelling a timer whose callable owns something takes two steps.
enum class kind { plain, owning };
constexpr kind kinds[]{kind::plain, kind::owning};

void add(stage& s, kind which, duration due) {
  if (which == kind::plain)
    s.add_plain(due);
  else
    s.add(due);
}

/// Timer 0 is due at 2 ms, which is now.
auto due_now(kind which) {
  return [=](stage& s) {
    add(s, which, 2ms);
    virtual_time::move_to(at(2ms));
  };
}
/// Timer 1 is due 3 ms after timer 0, whose record it has, and which was due now.
auto set_again(kind which, duration now = 2ms) {
  return [=](stage& s) {
    add(s, which, now);
    s.cancel(0);
    add(s, which, now + 3ms);
    virtual_time::move_to(at(now));
  };
}

/// Cancels timer `i`, and sets another one, with the same record.
part sets_again(std::size_t i, kind which, duration due) {
  return {"sets again", [=](stage& s) {
            s.cancel(i);
            add(s, which, due);
          }};
}
part cancels(std::size_t i) {
  return {"cancels", [=](stage& s) { s.cancel(i); }};
}
part moves(std::size_t i, duration to) {
  return {"moves", [=](stage& s) { s.move(i, to); }};
}
part looks(std::size_t i, duration due) {
  return {"looks", [=](stage& s) { s.look_at_due(i, due); }};
}
const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part ask{"driver asks", [](stage& s) { s.core().next_due(); }};
const part stop{"stops", [](stage& s) { s.stop(); }};
const part shrink{"shrinks", [](stage& s) { s.core().shrink_to_fit(); }};

TEST_CASE("a timer that is set again, and the driver") {
  for (const kind which : kinds)
    for (const part& driver : {pass, ask}) {
      check_every_schedule(on_stage(due_now(which), {sets_again(0, which, 5ms), driver}));
      check_every_schedule(on_stage(due_now(which), {sets_again(0, which, 2ms), driver}));
      check_every_schedule(on_stage(set_again(which), {sets_again(1, which, 6ms), driver}));
      check_every_schedule(on_stage(set_again(which), {sets_again(1, which, 1ms), driver}));
    }
}

TEST_CASE("a timer that was set again, the driver, and other calls about it") {
  for (const kind which : kinds)
    for (const part& driver : {pass, ask})
      for (const part& other :
           {cancels(1), moves(1, 3ms), moves(1, 9ms), moves(1, duration::max()), looks(1, 5ms), shrink, stop})
        check_every_schedule(on_stage(set_again(which), {driver, other}));
}

TEST_CASE("a timer that is set again, and calls that look for all timers") {
  for (const kind which : kinds) {
    for (const part& other : {stop, shrink, looks(0, 2ms)})
      check_every_schedule(on_stage(due_now(which), {sets_again(0, which, 5ms), other}));
    for (const part& other : {stop, shrink, looks(1, 5ms)})
      check_every_schedule(on_stage(set_again(which), {sets_again(1, which, 6ms), other}));
  }
}

TEST_CASE("a timer that was set again, the driver and a stop") {
  for (const kind which : kinds)
    for (const part& driver : {pass, ask})
      check_every_schedule(on_stage(set_again(which, 3ms), {driver, stop}));
}

TEST_CASE("a timer that is moved while it is cancelled") {
  const auto pending = [](stage& s) { s.add_plain(2ms); };
  for (const duration to : {duration(1ms), duration(4ms), duration(5ms), duration::max()})
    check_every_schedule(on_stage(pending, {moves(0, to), cancels(0)}));
}

TEST_CASE("a drain and a timer that is set again") {
  for (const kind which : kinds) {
    const auto pending = [=](stage& s) { add(s, which, 5ms); };
    const part drain{"drains", [=](stage& s) { s.drain(which == kind::plain ? 1ms : 0ms); }};
    check_every_schedule(on_stage(pending, {drain, {"cancels and sets again", [=](stage& s) {
                                                      s.cancel(0);
                                                      add(s, which, 6ms);
                                                      s.cancel(1);
                                                    }}}));
  }
}

TEST_CASE("a stop or drain, and a timer that is set again before it is due") {
  for (const kind which : kinds) {
    const auto pending = [=](stage& s) { add(s, which, 5ms); };
    check_every_schedule(on_stage(pending, {stop, sets_again(0, which, 6ms)}));
    const part drain{"drains", [=](stage& s) { s.drain(which == kind::plain ? 1ms : 0ms); }};
    const part cancels_and_repeats{"cancels and repeats", [](stage& s) {
                                     s.cancel(0);
                                     s.repeat(rondo::every(6ms));
                                   }};
    check_small(on_stage(pending, {drain, cancels_and_repeats}), 0, 3);  // three loads find it
  }
}

TEST_CASE("a stop, the driver, and a timer that is set again") {
  for (const kind which : kinds)
    check_every_schedule(on_stage(set_again(which), {stop, sets_again(1, which, 6ms), pass}), few);
}

}  // namespace interleavings_set_again
