// Users' calls, interleaved with the driver's pass and with each other.
#include "interleavings/stage.hpp"

namespace interleavings_calls {

using namespace rondo;
using namespace rondo::test;

/// The timers are due at 1 ms, and it is 1 ms.
void one_is_due(stage& s) {
  s.add(1ms);
  virtual_time::move_to(at(1ms));
}
using act = std::function<void(stage&)>;

void two_are_due(stage& s) {
  s.add(1ms);
  s.add(1ms);
  virtual_time::move_to(at(1ms));
}

const part pass{"driver", [](stage& s) { s.core().pass(); }};
const part cancel{"cancels", [](stage& s) { s.cancel(0); }};

part moving(duration to) {
  return {"moves", [to](stage& s) { s.move(0, to); }};
}

TEST_CASE("pass and cancel") { check_every_schedule(on_stage(one_is_due, {pass, cancel})); }

TEST_CASE("pass and cancel_and_wait") {
  check_every_schedule(on_stage(one_is_due, {pass, {"cancels", [](stage& s) { s.cancel_and_wait(0); }}}));
}

TEST_CASE("pass and reschedule") {
  for (const duration to : {duration(0ms), duration(1ms), duration(2ms), duration(3ms), duration::max()})
    check_every_schedule(on_stage(one_is_due, {pass, moving(to)}));
}

TEST_CASE("pass and schedule") {
  for (const duration due : {duration(0ms), duration(1ms), duration(2ms), duration(3ms), duration::max()})
    check_every_schedule(on_stage(one_is_due, {pass, {"schedules", [=](stage& s) { s.add(due); }}}));
}

TEST_CASE("memory of a timer is given back while a pass, or a call about it, may still meet its record") {
  const auto plain_is_due = [](stage& s) {
    s.add_plain(1ms);
    virtual_time::move_to(at(1ms));
  };
  const part cancel_and_shrink{"cancels and shrinks", [](stage& s) {
                                 s.cancel(0);
                                 s.core().shrink_to_fit();
                               }};
  const part shrink{"shrinks", [](stage& s) { s.core().shrink_to_fit(); }};
  for (const auto& prepare : {act(one_is_due), act(plain_is_due)}) {
    check_every_schedule(on_stage(prepare, {pass, cancel_and_shrink}), few);
    check_every_schedule(on_stage(prepare, {pass, shrink}), few);
    check_every_schedule(on_stage(prepare, {cancel, cancel_and_shrink}), few);
    check_every_schedule(on_stage(prepare, {cancel_and_shrink, {"lists", [](stage& s) { s.list(0); }}}), few);
    check_every_schedule(on_stage(prepare, {cancel_and_shrink, moving(2ms)}), few);
  }
}

TEST_CASE("cancel and cancel") {
  check_every_schedule(on_stage(one_is_due, {cancel, cancel}));
  check_every_schedule(on_stage(one_is_due, {cancel, cancel, pass}));
}

TEST_CASE("cancel and reschedule") {
  check_every_schedule(on_stage(one_is_due, {cancel, moving(2ms)}));
  check_every_schedule(on_stage(one_is_due, {cancel, moving(2ms), pass}));
}

TEST_CASE("reschedule and reschedule") {
  check_every_schedule(on_stage(one_is_due, {moving(2ms), moving(3ms)}));
  check_every_schedule(on_stage(one_is_due, {moving(0ms), moving(3ms), pass}));
}

TEST_CASE("pass, and timers that have a tick in common") {
  check_every_schedule(on_stage(two_are_due, {pass, cancel, {"cancels too", [](stage& s) { s.cancel(1); }}}));
}

TEST_CASE("pass, and calls that ask what is pending") {
  const auto due_and_later = [](stage& s) {
    one_is_due(s);
    s.add(3ms);
  };
  const part asks{"asks", [](stage& s) {
                    const auto next = s.core().next_due();
                    expect(next && *next <= at(3ms), "what is pending is due");
                    expect(s.pending(1), "a timer is pending until it is due");
                  }};
  check_every_schedule(on_stage(due_and_later, {pass, asks}));
}

TEST_CASE("list and concurrent changes") {
  const auto one_is_never_due_and_one_is_due = [](stage& s) {
    s.add(duration::max());
    s.add_plain(1ms);
    virtual_time::move_to(at(1ms));
  };
  const part list{"lists", [](stage& s) { s.list(1); }};
  const part cancel_second{"cancels", [](stage& s) { s.cancel(1); }};
  const part cancel_and_schedule{"cancels and schedules", [](stage& s) {
                                   s.cancel(1);
                                   s.add_plain(2ms);
                                 }};
  for (const part& other : {pass, cancel_second, cancel_and_schedule})
    check_every_schedule(on_stage(one_is_never_due_and_one_is_due, {list, other}));
  for (const duration to : {duration(0ms), duration(2ms), duration::max()}) {
    const part moves{"moves", [to](stage& s) { s.move(1, to); }};
    check_every_schedule(on_stage(one_is_never_due_and_one_is_due, {list, moves}));
  }
}

TEST_CASE("reschedule or list, and a cancel after which the record is reused for a timer with more to it") {
  const auto plain = [](stage& s) { s.add_plain(1ms); };
  const part cancel_and_repeat{"cancels and repeats", [](stage& s) {
                                 s.cancel(0);
                                 s.repeat(rondo::every(2ms));
                               }};
  check_small(on_stage(plain, {moving(3ms), cancel_and_repeat}), 0, 2);
  check_small(on_stage(plain, {{"lists", [](stage& s) { s.list(0); }}, cancel_and_repeat}), 0, 3);
}

TEST_CASE("due, and a cancel after which the record is reused for another timer") {
  const part look{"looks", [](stage& s) { s.look_at_due(0, 1ms); }};
  for (const duration due : {2ms, 3ms}) {
    const part cancel_and_schedule{"cancels and schedules", [due](stage& s) {
                                     s.cancel(0);
                                     s.add_plain(due);
                                   }};
    check_every_schedule(on_stage([](stage& s) { s.add_plain(1ms); }, {look, cancel_and_schedule}));
  }
}

}  // namespace interleavings_calls
