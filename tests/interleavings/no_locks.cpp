// No user code runs while a lock of the library is held, and the locks are always nested in the same order.
#include "interleavings/held_locks.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "schedule_on.hpp"
#include "scheduler/core.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/virtual_time.hpp"

namespace interleavings_no_locks {

using namespace rondo;
using namespace rondo::test;

std::atomic<std::size_t> looked{0};
std::atomic<std::size_t> held_in_user_code{0};

/// Called wherever user code runs.
void look() {
  ++looked;
  held_in_user_code += held_locks::count();
}

/// Its copies, moves, calls and destruction are all user code.
struct watched {
  watched() = default;
  watched(const watched&) { look(); }
  watched(watched&&) noexcept { look(); }
  watched& operator=(const watched&) = delete;
  ~watched() { look(); }
  void operator()() const { look(); }
};

/// A core driven by the test.
class probe final : public rondo::detail::core {
 public:
  using core::core;
  time_point now() const noexcept override { return time_point(duration(now_.load())); }
  timer_id after(duration d, rondo::task work) {
    return schedule_on(*this, now() + d, now(), std::move(work));
  }
  timer_id every(duration d, rondo::task work) { return schedule(rondo::every(d), std::move(work)); }
  using core::schedule;
  timer_id schedule(const rondo::recurrence& when, rondo::task work) {
    return schedule_on(*this, when, now(), std::move(work));
  }
  bool move(timer_id id, duration d) { return reschedule(id, rondo::saturating_add(now(), d), now()); }
  void advance(duration d) {
    now_ += d.count();
    run_pass(time_point::max(), rondo::unlimited);
  }

 protected:
  void next_due_moved_earlier() noexcept override { look(); }
  void end_driver() noexcept override { look(); }

 private:
  std::atomic<duration::rep> now_{0};
};

void check_so_far() {
  CHECK(looked > 0);
  CHECK(held_in_user_code == 0);
  CHECK(held_locks::disorders() == 0);
  CHECK(held_locks::count() == 0);
}

TEST_CASE("the core takes the locks that the test provides") {
  const std::size_t shards = held_locks::taken(lock_rank::shard);
  const std::size_t others = held_locks::taken(lock_rank::table);
  const auto core = std::make_shared<probe>(options{}, at(0s));
  core->after(1ms, watched());
  core->advance(1ms);
  CHECK(held_locks::taken(lock_rank::shard) > shards);
  CHECK(held_locks::taken(lock_rank::table) > others);
}

TEST_CASE("no lock is held in inline tasks, in destructors and in on_error") {
  const auto core = std::make_shared<probe>(
      options{.on_error = [w = watched()](std::exception_ptr, const firing&) { look(); }}, at(0s));
  core->after(1ms, watched());
  core->after(1ms, [w = watched()] { throw std::runtime_error("no"); });
  const auto often = core->every(1ms, [w = watched()] {
    look();
    throw 1;
  });
  core->cancel(core->after(1ms, watched()));
  core->cancel_and_wait(core->every(1ms, watched()));
  core->cancel(core->after(duration::max() / 2, watched()));
  for (int i = 0; i != 5; ++i) core->advance(1ms);
  core->cancel(often);
  timer_id own;
  own = core->every(1ms, [&core, &own, w = watched()] { core->cancel(own); });
  core->advance(1ms);
  core->after(1ms, watched());
  core->after(1h, watched());
  core->every(1h, watched());
  core->stop().clear();
  CHECK_THROWS_AS(core->after(1h, watched()), rondo::stopped_error);
  core->retire();
  check_so_far();
}

TEST_CASE("no lock is held in the executor, in its jobs, and when they are dropped") {
  std::vector<job> jobs;
  int calls = 0;
  const auto core =
      std::make_shared<probe>(options{.run_on =
                                          [&, w = watched()](job j) {
                                            look();
                                            ++calls;
                                            if (calls % 5 == 0) throw 1;
                                            if (calls % 5 == 1) return;
                                            if (calls % 5 == 2) j();
                                            jobs.push_back(std::move(j));
                                          },
                                      .on_error = [](std::exception_ptr, const firing&) { look(); }},
                              at(0s));
  std::vector<timer_id> ids;
  for (int i = 0; i != 50; ++i) ids.push_back(core->after(i % 7 * 1ms, watched()));
  for (int i = 0; i != 10; ++i) ids.push_back(core->every(1ms, watched()));
  for (int i = 0; i != 10; ++i) core->advance(1ms);
  for (std::size_t i = 0; i < ids.size(); i += 3) core->cancel(ids[i]);
  for (std::size_t i = 1; i < ids.size(); i += 3) core->move(ids[i], 1ms);
  for (std::size_t i = 0; i < jobs.size(); i += 2) jobs[i]();
  jobs.resize(jobs.size() / 2);
  core->advance(1ms);
  core->retire();
  jobs.clear();
  check_so_far();
}

TEST_CASE("no lock is held when an unused scheduler releases its handlers") {
  const auto core = std::make_shared<probe>(options{.run_on = [w = watched()](const job&) {}}, at(0s));
  core->retire();
  check_so_far();
}

rondo::recurrence any_recurrence(dice& d) {
  const auto gap = [&] { return duration(50'000 + d.roll(3'000'000)); };
  const rondo::recurrence kinds[] = {rondo::every(gap()), rondo::after_completion(gap()),
                                     rondo::intervals({gap(), gap(), gap()}), rondo::cycle({gap(), gap()}),
                                     rondo::backoff(gap(), 1.5, 4ms)};
  rondo::recurrence r = kinds[d.roll(std::size(kinds))]
                            .on_missed(static_cast<rondo::missed_runs>(d.roll(3)), 1 + d.roll(4))
                            .on_overlap(static_cast<rondo::overlapping_runs>(d.roll(3)));
  if (d.one_in(2)) r = r.times(1 + d.roll(5));
  if (d.one_in(2)) r = r.jitter(0.5);
  return r;
}

TEST_CASE("no lock is held in runs of any recurrence, inline, on executors and in drain()") {
  dice d(1);
  std::vector<job> jobs;
  for (const bool inline_runs : {true, false}) {
    options o;
    if (!inline_runs) o.run_on = [&](job j) { jobs.push_back(std::move(j)); };
    const auto core = std::make_shared<probe>(o, at(0s));
    for (int i = 0; i != 60; ++i)
      schedule_on(*core, any_recurrence(d), core->now(), watched(),
                  i % 3 == 0 ? timer_options{.run_on =
                                                 [&, w = watched()](job j) {
                                                   look();
                                                   jobs.push_back(std::move(j));
                                                 }}
                             : timer_options{});
    for (int i = 0; i != 60; ++i) {
      core->advance(duration(d.roll(2'000'000)));
      while (jobs.size() > 20) {
        std::swap(jobs[d.roll(jobs.size())], jobs.back());
        if (d.one_in(4)) jobs.back()();
        jobs.pop_back();
      }
    }
    const auto far = core->after(1h, watched());
    CHECK(!core->drain(-1s));
    jobs.clear();
    core->cancel(far);
    CHECK(core->drain(-1s));
    core->retire();
    check_so_far();
  }
}

class probe_group final : public rondo::detail::timer_group,
                          public std::enable_shared_from_this<probe_group> {
  std::shared_ptr<void> self() noexcept override { return shared_from_this(); }
};

timer_id join(probe& core, duration d, probe_group& group) {
  auto& r = core.take_record(true);
  r.work = watched();
  try {
    return core.schedule_member(r, rondo::saturating_add(core.now(), d), core.now(), group);
  } catch (...) {
    core.discard(r, true);
    throw;
  }
}

/// A timer reports its end here. This is where keyed_timers destroys a key.
class probe_owner final : public rondo::detail::timer_owner {
  void leave(rondo::detail::record&, timer_id) noexcept override { look(); }
};

/// Sets a timer in the same way as keyed_timers.
timer_id replace(probe& core, timer_id old, duration d, probe_owner& owner) {
  auto& r = core.take_record(true);
  r.work = watched();
  probe::remainder rest;
  timer_id id;
  try {
    id = core.replace(old, r, rondo::saturating_add(core.now(), d), core.now(), owner, 1, rest);
  } catch (...) {
    core.discard(r, true);
    throw;
  }
  core.finish(rest);
  return id;
}

TEST_CASE("no lock is held when timers of a group are cancelled or moved, or the group is closed") {
  const auto core = std::make_shared<probe>(options{.max_pending = 40}, at(0s));
  const auto group = std::make_shared<probe_group>();
  std::vector<timer_id> ids(40);
  for (int i = 0; i != 400; ++i) {
    timer_id& id = ids[static_cast<std::size_t>(i * 7 % 40)];
    core->cancel(id);
    id = join(*core, i % 9 == 0 ? duration::max() : i % 5 * 1ms, *group);
    if (i % 13 == 0) core->move(id, 1h);
    if (i % 17 == 0) core->advance(1ms);
    if (i % 101 == 0) core->cancel_all(*group);
  }
  static_cast<void>(core->pending(*group));
  core->close(*group);
  CHECK(core->pending() == 0);
  CHECK_THROWS_AS(join(*core, 1ms, *group), rondo::stopped_error);
  core->retire();
  check_so_far();
}

TEST_CASE("no lock is held when timers with an owner are replaced, cancelled or moved") {
  const auto core = std::make_shared<probe>(options{.max_pending = 40}, at(0s));
  probe_owner owner;
  std::vector<timer_id> ids(40);
  for (int i = 0; i != 400; ++i) {
    timer_id& id = ids[static_cast<std::size_t>(i * 7 % 40)];
    id = replace(*core, id, i % 9 == 0 ? duration::max() : i % 5 * 1ms, owner);
    probe::remainder rest;
    if (i % 11 == 0) core->cancel(id, rest);
    if (i % 13 == 0) core->reschedule(id, at(1h), core->now(), rest);
    core->finish(rest);
    if (i % 17 == 0) core->advance(1ms);
  }
  for (const timer_id id : ids) core->cancel(id);
  CHECK(core->pending() == 0);
  core->retire();
  check_so_far();
}

TEST_CASE("a group lives as long as its owner or one of its timers") {
  const auto core = std::make_shared<probe>(options{}, at(0s));
  auto group = std::make_shared<probe_group>();
  const std::weak_ptr<probe_group> watch = group;
  join(*core, 1ms, *group);
  core->advance(1ms);
  CHECK_FALSE(watch.expired());
  join(*core, 1ms, *group);
  group.reset();
  CHECK_FALSE(watch.expired());
  core->advance(1ms);
  CHECK(watch.expired());
  core->retire();
}

/// Everything that users may do, from several threads at once, which also run the jobs.
class commotion {
 public:
  void run(std::uint64_t seed) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t != 3; ++t)
      threads.emplace_back([this, t, seed] { use(dice(seed + 1000 * t)); });
    std::thread driver([this] {
      while (users_ != 0) core_->advance(100us);
    });
    for (std::thread& t : threads) t.join();
    driver.join();
    core_->stop();
    core_->retire();
  }

 private:
  void use(dice d) {
    std::vector<timer_id> ids;
    for (int i = 0; i != 2000; ++i) {
      const auto delay = duration(d.roll(3'000'000));
      if (!ids.empty() && d.one_in(3)) {
        const timer_id id = ids[d.roll(ids.size())];
        if (d.one_in(3)) {
          core_->cancel(id);
        } else if (d.one_in(2)) {
          core_->move(id, d.one_in(5) ? duration::max() : delay);
        } else {
          core_->cancel_and_wait(id);
        }
      }
      ids.push_back(d.one_in(20) ? core_->schedule(any_recurrence(d), watched())
                                 : core_->after(delay, watched()));
      if (d.one_in(10)) {
        const std::lock_guard hold(key_mutex_);
        key_ = replace(*core_, key_, delay, owner_);
      }
      if (d.one_in(10)) join(*core_, delay, *group_);
      if (d.one_in(200)) core_->cancel_all(*group_);
      if (d.one_in(50)) static_cast<void>(core_->next_due());
      if (ids.size() > 50) ids.erase(ids.begin());
      run_a_job();
    }
    --users_;
  }

  void run_a_job() {
    std::optional<job> j;
    {
      const std::lock_guard hold(jobs_mutex_);
      if (jobs_.empty()) return;
      j.emplace(std::move(jobs_.back()));
      jobs_.pop_back();
    }
    (*j)();
  }

  std::mutex key_mutex_;
  timer_id key_;
  probe_owner owner_;
  const std::shared_ptr<probe_group> group_ = std::make_shared<probe_group>();
  std::mutex jobs_mutex_;
  std::vector<job> jobs_;
  std::atomic<int> users_{3};
  std::shared_ptr<probe> core_ =
      std::make_shared<probe>(options{.buckets = 8,
                                      .run_on =
                                          [this](job j) {
                                            look();
                                            const std::lock_guard hold(jobs_mutex_);
                                            jobs_.push_back(std::move(j));
                                          }},
                              at(0s));
};

TEST_CASE("with several threads, no lock is held in user code, and all are nested in the same order") {
  for (const std::uint64_t seed : seeds("locks under threads", 3)) {
    CAPTURE(seed);
    commotion().run(seed);
  }
  check_so_far();
}

}  // namespace interleavings_no_locks
