// Groups of timers, and timers that replace others.
#include "interleavings/explored_core.hpp"
#include "interleavings/numbered_timers.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "scheduler/timer_group.hpp"

namespace interleavings_groups {

using namespace rondo;
using namespace rondo::test;

/// Whose timers there are, and whether their callables own something. Only those of an owner can be replaced; each notes when
/// it has left.
struct kind {
  bool with_owner = false;
  bool owns = true;
};

/// A core, a group or an owner, and its timers by number.
class group_stage {
 public:
  group_stage(kind k, options o)
      : kind_(k),
        core_(std::make_shared<explored_core>(o, false)),
        group_(std::make_shared<group>(core_)),
        owner_(*this) {}
  group_stage(const group_stage&) = delete;
  group_stage& operator=(const group_stage&) = delete;

  explored_core& core() { return *core_; }

  /// Returns false if the group is closed, the scheduler is stopped, or there is no place.
  bool add(duration due, std::optional<std::size_t> in_place_of = {}) {
    auto owned = kind_.owns ? std::make_shared<int>() : nullptr;
    timer& t = add_timer(owned);
    const timer_id old = in_place_of ? timers_.id(*in_place_of) : timer_id{};
    const auto work = [&t] {
      const unwatched here;
      expect(t.running.fetch_add(1, std::memory_order_relaxed) == 0 && !t.replaced,
             "a task that was replaced does not start");
      ++t.runs;
      t.running.fetch_sub(1, std::memory_order_relaxed);
    };
    detail::record* r = nullptr;
    explored_core::remainder rest;
    try {
      r = &core_->take_record(true);
      if (kind_.owns)
        r->work = [work, held = std::move(owned)] { work(); };
      else
        r->work = work;
      timers_.set_id(t, kind_.with_owner ? core_->replace(old, *r, at(due), core_->now(), owner_, t.tag, rest)
                                         : core_->schedule_member(*r, at(due), core_->now(), *group_));
    } catch (const std::runtime_error&) {
      if (r != nullptr) core_->discard(*r, true);
      const unwatched here;
      t.refused = true;
      return false;
    }
    if (rest.has_ended) note_replaced(*in_place_of);  // otherwise its run had begun, or it had ended
    core_->finish(rest);
    return true;
  }

  void cancel(std::size_t i) {
    if (kind_.with_owner)
      core_->cancel(timers_.id(i));
    else
      core_->cancel_member(timers_.id(i), *group_);
  }
  void cancel_for_owner(std::size_t i) {
    explored_core::remainder rest;
    core_->cancel_for_owner(timers_.id(i), rest);
    expect(!core_->pending(timers_.id(i)), "a timer that was cancelled is not pending");
    if (rest.has_ended) note_cancelled(i);
    core_->finish(rest);
  }
  void move(std::size_t i) { core_->reschedule(timers_.id(i), at(3ms), core_->now()); }
  void cancel_all() {
    const std::size_t known = timers_.count();
    core_->cancel_all(*group_);
    for (std::size_t i = 0; i != known && i != before_; ++i)
      expect(!core_->pending(timers_.id(i)), "cancel_all() leaves none of those before it");
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
    if (!kind_.with_owner) {
      expect(core_->pending() == core_->pending(*group_), "all that is pending is a member");
      close();
    }
    stop();
    std::size_t scheduled = 0, runs = 0;
    for (const timer& t : timers_) {
      expect(t.callable.expired(), "a timer that has ended has no callable");
      if (kind_.with_owner)
        expect(t.left == (t.refused || t.replaced || t.cancelled ? 0 : 1),
               "each timer leaves once, unless the owner itself has ended it");
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
    bool replaced = false, refused = false, cancelled = false;
    int left = 0;
    std::uint32_t tag = 0;
  };

  timer& add_timer(const std::weak_ptr<int>& callable) {
    timer& t = timers_.add();
    const unwatched here;
    t.callable = callable;
    t.tag = static_cast<std::uint32_t>(timers_.count());
    return t;
  }
  void note_replaced(std::size_t i) {
    const unwatched here;
    timers_[i].replaced = true;
  }
  void note_cancelled(std::size_t i) {
    const unwatched here;
    timers_[i].cancelled = true;
  }

  /// Keeps the core alive, as the groups of scopes do.
  class group final : public detail::timer_group, public std::enable_shared_from_this<group> {
   public:
    explicit group(std::shared_ptr<explored_core> c) : kept_(std::move(c)) {}

   private:
    std::shared_ptr<void> self() noexcept override { return shared_from_this(); }
    const std::shared_ptr<explored_core> kept_;
  };

  class owner final : public detail::timer_owner {
   public:
    explicit owner(group_stage& s) : stage_(s) {}

   private:
    void leave(detail::record& r, timer_id id) noexcept override {
      const unwatched here;
      timer& t = stage_.timers_[r.tag - 1];
      expect(t.callable.expired() || stage_.stopping_, "a timer leaves when its callable is destroyed");
      expect(t.id == timer_id{} || t.id == id, "a timer leaves under its id");
      ++t.left;
    }
    group_stage& stage_;
  };

  numbered_timers<timer> timers_;
  std::size_t before_ = 0;
  bool stopping_ = false, stolen_ = false;
  const kind kind_;
  std::shared_ptr<explored_core> core_;
  std::shared_ptr<group> group_;
  owner owner_;
};

struct act {
  const char* name;
  std::function<void(group_stage&)> what;
};

/// Begins with that many timers, all due at 1 ms. It is 1 ms.
void explore(kind k, int timers, const std::vector<act>& acts, std::optional<std::size_t> preemptions,
             options o) {
  o.buckets = 2;
  check_every_schedule(
      [=] {
        const auto s = std::make_shared<group_stage>(k, o);
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

/// The timers of a scope.
void explore(int timers, const std::vector<act>& acts, std::optional<std::size_t> preemptions = {}) {
  explore({.owns = true}, timers, acts, preemptions, {});
  explore({.owns = false}, timers, acts, preemptions, {});
}

/// Timers that can be replaced.
void explore_replacing(const std::vector<act>& acts, std::optional<std::size_t> preemptions = {},
                       const options& o = {}) {
  explore({.with_owner = true, .owns = true}, 1, acts, preemptions, o);
  explore({.with_owner = true, .owns = false}, 1, acts, preemptions, o);
}

const act pass{"driver", [](group_stage& s) { s.core().pass(); }};
const act cancel{"cancels", [](group_stage& s) { s.cancel(0); }};
const act cancel_second{"cancels the second", [](group_stage& s) { s.cancel(1); }};
const act cancel_all{"cancels all", [](group_stage& s) { s.cancel_all(); }};
const act cancel_for_owner{"cancels for the owner", [](group_stage& s) { s.cancel_for_owner(0); }};
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
  const act replace_by_later{"replaces", [](group_stage& s) { s.add(5ms, 0); }};
  const act move{"moves", [](group_stage& s) { s.move(0); }};
  explore_replacing({replace, pass});
  explore_replacing({replace_by_later, pass});
  explore_replacing({replace, cancel});
  explore_replacing({replace, cancel_for_owner});
  explore_replacing({replace, stop});
  explore_replacing({replace, move});
  explore_replacing({replace, pass, cancel}, few);
  explore_replacing({replace, pass, stop}, few);
}

TEST_CASE("at the limit no other timer gets the place of a replaced timer") {
  const act steal{"schedules", [](group_stage& s) { s.steal(); }};
  const act replace_by_later{"replaces", [](group_stage& s) { s.add(5ms, 0); }};
  explore_replacing({replace_by_later, steal}, {}, {.max_pending = 1});
  explore_replacing({replace_by_later, steal, pass}, few, {.max_pending = 1});
}

TEST_CASE("at the limit only one of two timers can replace the same timer") {
  const auto one_pending = [](group_stage& s) { expect(s.core().pending() <= 1, "one is pending"); };
  const act replace_and_look{"replaces", [=](group_stage& s) {
                               s.add(1ms, 0);
                               one_pending(s);
                             }};
  explore_replacing({replace_and_look, replace_and_look}, few, {.max_pending = 1});
}

}  // namespace interleavings_groups
