// Groups of timers, and timers that replace others.
#include "interleavings/explored_core.hpp"
#include "interleavings/numbered_timers.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "scheduler/timer_group.hpp"

namespace interleavings_groups {

using namespace rondo;
using namespace rondo::test;

/// A core, a group, and the group's timers by number. Each timer with a tag notes when it has left.
class group_stage {
 public:
  explicit group_stage(options o)
      : core_(std::make_shared<explored_core>(o, false)), group_(std::make_shared<group>(*this)) {}
  group_stage(const group_stage&) = delete;
  group_stage& operator=(const group_stage&) = delete;

  explored_core& core() { return *core_; }

  /// Returns false if the group is closed, the scheduler is stopped, or there is no place.
  bool add(duration due, std::optional<std::size_t> in_place_of = {}) {
    auto owned = std::make_shared<int>();
    timer& t = add_timer(owned);
    const timer_id old = in_place_of ? timers_.id(*in_place_of) : timer_id{};
    detail::record* r = nullptr;
    explored_core::remainder rest;
    try {
      r = &core_->take_record(true);
      r->work = [&t, held = std::move(owned)] {
        const unwatched here;
        expect(t.running.fetch_add(1, std::memory_order_relaxed) == 0 && !t.replaced,
               "a task that was replaced does not start");
        ++t.runs;
        t.running.fetch_sub(1, std::memory_order_relaxed);
      };
      timers_.set_id(t, core_->schedule_member(*r, at(due), core_->now(), *group_, &t, old, rest));
    } catch (const std::runtime_error&) {
      if (r != nullptr) core_->discard(*r, true);
      const unwatched here;
      t.refused = true;
      return false;
    }
    if (rest.ended != nullptr) note_replaced(*in_place_of);  // otherwise its run had begun, or it had ended
    core_->finish(rest);
    return true;
  }

  void cancel(std::size_t i) { core_->cancel(timers_.id(i)); }
  void cancel_in_two_parts(std::size_t i) {
    explored_core::remainder rest;
    core_->cancel(timers_.id(i), rest);
    expect(!core_->pending(timers_.id(i)), "a timer that was cancelled is not pending");
    core_->finish(rest);
  }
  void cancel_all() {
    const std::size_t known = timers_.count();
    core_->cancel_all(*group_);
    for (std::size_t i = 0; i != known && i != before_; ++i)
      expect(!core_->pending(timers_.id(i)), "cancel_all() leaves none of those before it");
  }
  /// Waits for the timers with the tag of number `i` (here only one), as when keyed timers are cancelled.
  void wait_for(std::size_t i) {
    core_->cancel(timers_.id(i));
    {
      detail::timer_group::cursor members(*group_);
      while (const auto id = core_->next_tagged(members, &timers_[i]))
        if (*id != timer_id{}) core_->cancel_and_wait(*id);
    }
    const unwatched here;
    expect(timers_[i].running.load(std::memory_order_relaxed) == 0,
           "no run is in progress of what was waited for");
    expect(timers_[i].callable.expired() || stopping_, "the callable of what was waited for is destroyed");
    for (std::size_t k = 0; k != before_; ++k)
      expect(k == i || !waits_alone_ || core_->pending(timers_[k].id), "the others stay");
  }
  /// As wait_for(), if no other thread ends timers.
  void wait_for_alone(std::size_t i) {
    {
      const unwatched here;
      waits_alone_ = true;
    }
    wait_for(i);
  }
  void close() {
    core_->close(*group_);
    expect(core_->pending(*group_) == 0, "a closed group has no timers");
    const unwatched here;
    for (const timer& t : timers_) {
      expect(t.running.load(std::memory_order_relaxed) == 0, "after close() no run is in progress");
      if (t.id != timer_id{} && !stopping_)
        expect(t.callable.expired(), "after close() all callables are destroyed");
    }
  }
  void stop() {
    {
      const unwatched here;
      stopping_ = true;
    }
    core_->stop();
  }

  /// Schedules a timer for which there is no place until the first has run.
  void steal() { stolen_ = add(5ms); }
  std::size_t pending() { return core_->pending(*group_); }
  /// Notes the number of timers before the threads begin.
  void begin() { before_ = timers_.count(); }

  /// Called when the threads are done.
  void check() {
    expect(!stolen_ || !timers_[0].replaced, "no other timer gets the place of one that is replaced");
    expect(core_->pending() == core_->pending(*group_), "all that is pending is a member");
    close();
    stop();
    std::size_t scheduled = 0, runs = 0;
    for (const timer& t : timers_) {
      expect(t.callable.expired(), "a timer that has ended has no callable");
      expect(t.left == (t.refused ? 0 : 1), "each member leaves once");
      scheduled += t.refused ? 0 : 1;
      runs += static_cast<std::size_t>(t.runs);
    }
    const statistics s = core_->stats();
    expect(s.scheduled == scheduled && s.fired == runs, "what is scheduled, and what has run, is counted");
    expect(s.pending == 0 && adds_up(s), "the counters add up");
    core_->retire();
    group_.reset();
    expect(core_.use_count() == 1, "a group that nobody has is gone");
  }

 private:
  struct timer : numbered_timer {
    bool replaced = false, refused = false;
    int left = 0;
  };

  timer& add_timer(const std::weak_ptr<int>& callable) {
    timer& t = timers_.add();
    const unwatched here;
    t.callable = callable;
    return t;
  }
  void note_replaced(std::size_t i) {
    const unwatched here;
    timers_[i].replaced = true;
  }

  /// Keeps the core alive, as the groups of scopes and keyed timers do.
  class group final : public detail::timer_group, public std::enable_shared_from_this<group> {
   public:
    explicit group(group_stage& s) : stage_(s), kept_(s.core_) {}

   private:
    std::shared_ptr<void> self() noexcept override { return shared_from_this(); }
    void left(void* tag, timer_id id) noexcept override {
      const unwatched here;
      timer& t = *static_cast<timer*>(tag);
      expect(t.callable.expired() || stage_.stopping_, "a timer leaves when its callable is destroyed");
      expect(t.id == timer_id{} || t.id == id, "a timer leaves under its id");
      ++t.left;
    }
    const group_stage& stage_;
    const std::shared_ptr<explored_core> kept_;
  };

  numbered_timers<timer> timers_;
  std::size_t before_ = 0;
  bool stopping_ = false, stolen_ = false, waits_alone_ = false;
  std::shared_ptr<explored_core> core_;
  std::shared_ptr<group> group_;
};

struct act {
  const char* name;
  std::function<void(group_stage&)> what;
};

/// Begins with that many timers, all due at 1 ms. It is 1 ms.
void explore(int timers, std::vector<act> acts, std::optional<std::size_t> preemptions = {}, options o = {}) {
  o.buckets = 2;
  check_every_schedule(
      [=] {
        const auto s = std::make_shared<group_stage>(o);
        for (int i = 0; i != timers; ++i) s->add(1ms);
        s->begin();
        virtual_time::move_to(at(1ms));
        scenario what;
        for (const act& a : acts) what.threads.push_back({a.name, [s, a] { a.what(*s); }});
        what.check = [s] { s->check(); };
        return what;
      },
      preemptions);
}

const act pass{"driver", [](group_stage& s) { s.core().pass(); }};
const act cancel{"cancels", [](group_stage& s) { s.cancel(0); }};
const act cancel_second{"cancels the second", [](group_stage& s) { s.cancel(1); }};
const act cancel_all{"cancels all", [](group_stage& s) { s.cancel_all(); }};
const act cancel_in_two_parts{"cancels in two parts", [](group_stage& s) { s.cancel_in_two_parts(0); }};
const act close{"closes", [](group_stage& s) { s.close(); }};
const act stop{"stops", [](group_stage& s) { s.stop(); }};
const act add{"schedules", [](group_stage& s) { s.add(1ms); }};
const act add_never{"schedules what is never due",
                    [](group_stage& s) { s.add(duration::max() - time_point(at(0s)).time_since_epoch()); }};
const act replace{"replaces", [](group_stage& s) { s.add(1ms, 0); }};

TEST_CASE("a group is closed while a timer joins it") {
  explore(0, {close, add});
  explore(1, {close, add});
  explore(0, {close, add_never});
  explore(0, {close, add, pass}, few);
}

TEST_CASE("a group is closed, and its timers run, end, or are cancelled") {
  explore(1, {close, pass});
  explore(1, {close, cancel});
  explore(1, {close, cancel_in_two_parts});
  explore(1, {close, stop});
  explore(1, {close, close}, few);
  explore(2, {close, cancel, cancel_second}, few);
}

TEST_CASE("a timer that is refused as it joins a group during a visit ends once") {
  explore(0, {cancel_all, add, stop}, few);
  explore(0, {close, add, stop}, few);
  explore(0, {cancel_all, add_never, stop}, few);
}

TEST_CASE("concurrent visits of a group, while timers leave it, each visit all timers that stay") {
  explore(2, {cancel_all, cancel}, few);
  explore(2, {cancel_all, cancel_second}, few);
  explore(2, {cancel_all, cancel_all}, few);
  explore(3, {cancel_all, cancel_all, cancel_second}, few);
  explore(1, {cancel_all, pass});
  explore(2, {cancel_all, add}, few);
}

TEST_CASE("a timer replaces one that runs, is cancelled, or ends") {
  explore(1, {replace, pass});
  explore(1, {replace, cancel});
  explore(1, {replace, cancel_in_two_parts});
  explore(1, {replace, stop});
  explore(1, {replace, cancel_all}, few);
  explore(1, {replace, close}, few);
  explore(1, {replace, pass, cancel}, few);
}

TEST_CASE(
    "a thread waits for the timers of a group with a tag, while timers run, end, join and are visited") {
  const act wait{"waits", [](group_stage& s) { s.wait_for(0); }};
  const act wait_for_second{"waits for the second", [](group_stage& s) { s.wait_for(1); }};
  const act wait_alone{"waits", [](group_stage& s) { s.wait_for_alone(1); }};
  explore(1, {wait, pass});
  explore(1, {wait, cancel});
  explore(1, {wait, replace}, few);
  explore(1, {wait, stop}, few);
  explore(2, {wait, wait_for_second}, few);
  explore(2, {wait_for_second, cancel}, few);
  explore(3, {wait_alone, add}, few);
  explore(2, {wait_for_second, close}, few);
  explore(2, {wait_for_second, pass, cancel}, few);
}

TEST_CASE("at the limit no other timer gets the place of a replaced timer") {
  const act steal{"schedules", [](group_stage& s) { s.steal(); }};
  const act replace_by_later{"replaces", [](group_stage& s) { s.add(5ms, 0); }};
  explore(1, {replace_by_later, steal}, {}, {.max_pending = 1});
  explore(1, {replace_by_later, steal, pass}, few, {.max_pending = 1});
}

TEST_CASE("at the limit only one of two timers can replace the same timer") {
  const auto one_pending = [](group_stage& s) { expect(s.pending() <= 1, "one is pending"); };
  const act replace_and_look{"replaces", [=](group_stage& s) {
                               s.add(1ms, 0);
                               one_pending(s);
                             }};
  explore(1, {replace_and_look, replace_and_look}, few, {.max_pending = 1});
}

}  // namespace interleavings_groups
