// What a thread finds with the word of a record, while the record goes from timer to timer.
#include "interleavings/stage.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "scheduler/record.hpp"
#include "scheduler/striped_wheel.hpp"

namespace interleavings_words {

using namespace rondo;
using namespace rondo::test;
using rondo::detail::node_word;
using rondo::detail::place;
using rondo::detail::record;

/// A record that serves timer 1, which is due at 1 ms, and then timer 2, which is due at 2 ms, and goes there in this way.
void check_deadlines(const std::function<void(record&)>& set_again) {
  check_small([=] {
    const auto r = std::make_shared<record>(0);
    r->set_deadline(at(1ms));
    r->set(node_word::of(1, place::waiting));
    const auto cancel_and_set = [r, set_again] {
      expect(r->cancel_in_place(1), "nobody else cancels it");
      r->set_next_free(nullptr);
      set_again(*r);
    };
    const auto read = [r] {
      const node_word seen = r->word();
      const auto due = r->deadline_if(seen);
      if (due && seen.is_scheduled())
        expect(*due == at(seen.generation() == 1 ? 1ms : 2ms), "a deadline is that of the timer in the word");
    };
    return scenario{{{"sets again", cancel_and_set}, {"reads", read}}};
  });
}

TEST_CASE("a deadline is that of the timer in the word, or is not told") {
  check_deadlines([](record& r) {
    r.set_deadline(at(2ms));
    r.change(r.word(), node_word::of(2, place::waiting));
  });
  check_deadlines([](record& r) {
    r.set(node_word::of(2, place::out));
    r.set_deadline(at(2ms));
    r.set(node_word::of(2, place::waiting));
  });
}

/// A plain timer is cancelled, and its record then serves one with options.
TEST_CASE("what says whether a timer is plain is that of the timer in the word") {
  check_small([] {
    const auto r = std::make_shared<record>(0);
    r->set(node_word::of(1, place::waiting));
    const auto cancel_and_set = [r] {
      expect(r->cancel_in_place(1), "nobody else cancels it");
      r->keep({.name = "the next"});
    };
    const auto read = [r] {
      const std::lock_guard hold(r->mutex);
      const bool is_plain = r->plain.load(std::memory_order_acquire);
      const std::uint64_t generation = r->generation();
      expect(is_plain || generation == 2, "the first timer is plain");
    };
    return scenario{{{"sets again", cancel_and_set}, {"reads", read}}};
  });
}

TEST_CASE("a thread that cancels a timer knows which wait it ends") {
  check_small([] {
    const auto r = std::make_shared<record>(0);
    const auto set = [r] {
      r->arming.store(5, detail::relaxed);
      r->set(node_word::of(1, place::waiting));
    };
    const auto cancel = [r] {
      if (!r->cancel_in_place(1)) return;
      r->invalidate_wait();
      expect(r->arming.load(detail::relaxed) == 6, "it waited for the fifth moment");
    };
    return scenario{{{"sets", set}, {"cancels", cancel}}};
  });
}

/// As stop() raises its flag.
TEST_CASE("a node that was cancelled before a flag was raised is not visited afterwards") {
  check_small([] {
    struct state {
      detail::striped_wheel wheel{2, 0};
      detail::shared_node node;
      explored_atomic<bool> flag;
      bool is_cancelled_before = false, is_visited = false;
    };
    const auto s = std::make_shared<state>();
    s->wheel.schedule(
        s->node, 5, place::waiting, [] { return true; }, [] {});
    const auto cancel = [s] {
      expect(s->node.cancel_in_place(1), "nobody else cancels it");
      s->is_cancelled_before = !s->flag.load();
    };
    const auto visit = [s] {
      s->flag.store(true);
      s->wheel.for_each([s](detail::shared_node&) { s->is_visited = true; });
    };
    return scenario{{{"cancels", cancel}, {"visits", visit}},
                    [s] { expect(!s->is_cancelled_before || !s->is_visited, "it is not there"); }};
  });
}

/// Timer 0 is pending, and cancelled; then its record serves another one.
void one_is_pending(stage& s) { s.add_plain(2ms); }

TEST_CASE("list, and a record that then serves a timer with options") {
  check_small(on_stage(one_is_pending, {{"cancels and schedules",
                                         [](stage& s) {
                                           s.cancel(0);
                                           s.add_job(5ms);
                                         }},
                                        {"lists", [](stage& s) { s.list(0); }}}));
}

TEST_CASE("stop, and a timer that is set again after the look at whether the scheduler is stopped") {
  check_small(on_stage(one_is_pending, {{"sets again",
                                         [](stage& s) {
                                           s.cancel(0);
                                           s.add_plain(5ms);
                                         }},
                                        {"stops", [](stage& s) { s.stop(); }}}));
}

TEST_CASE("stop, and the first timer of all") {
  for (const duration due : {duration(2ms), duration::max()})
    check_small(on_stage([](stage&) {}, {{"schedules", [due](stage& s) { s.add(due); }},
                                         {"stops", [](stage& s) { s.stop(); }}}));
}

}  // namespace interleavings_words
