// Random programs with an executor that does everything that executors may do, and a limit of timers: nothing is lost
// or counted twice. (What runs when is tested by model/random_programs.cpp.)
#include <map>
#include <memory>
#include <stdexcept>

#include "model/random_recurrence.hpp"
#include "scheduler/seeds.hpp"
#include "scheduler/virtual_time.hpp"

namespace scheduler_random_executors {

using namespace rondo;
using namespace rondo::test;

class program {
 public:
  explicit program(std::uint64_t seed)
      : choices_(choices::drawn(seed)),
        time_(options{.buckets = 16,
                      .max_pending = 40,
                      .run_on = [this](job j) { take(std::move(j)); },
                      .on_error = [this](std::exception_ptr, const firing&) { ++reported_; }}) {}

  void run(int steps) {
    for (int i = 0; i != steps; ++i) {
      step();
      if (i % 16 == 0) check_counts(time_.stats());
    }
    stop();
  }

 private:
  void step() {
    switch (choices_.below(9)) {
      case 0:
      case 1:
      case 2:
        return schedule();
      case 3:
        return cancel();
      case 4:
        return reschedule();
      case 5:
        return run_a_job();
      case 6:
        return drop_a_job();
      default:
        time_.advance(duration(choices_.below(5'000'000)));
    }
  }

  void schedule() {
    const auto d = duration(choices_.below(30'000'000));
    const bool often = choices_.one_in(4);
    const auto work = [this, token = token_, often](const firing& f) {
      ++ran_;
      if (!often) ++one_shots_ran_;
      missed_ += f.missed;
      if (choices_.one_in(5)) step_inside();
      if (!choices_.one_in(5)) return;
      ++threw_;
      throw 1;
    };
    try {
      ids_.push_back(often ? time_.schedule(some_recurrence(), work) : time_.schedule_after(d, work));
    } catch (const rondo::capacity_error&) {
      CHECK(time_.pending() == 40);
    }
  }

  rondo::recurrence some_recurrence() {
    return made_from(plans_.make(time_.now().time_since_epoch().count()), rondo::time_point());
  }

  void step_inside() {
    switch (choices_.below(4)) {
      case 0:
        return schedule();
      case 1:
        return cancel();
      case 2:
        return reschedule();
      default:
        time_.elapse(duration(choices_.below(3'000'000)));
    }
  }

  void cancel() {
    if (ids_.empty()) return;
    const auto id = ids_[choices_.below(ids_.size())];
    const bool was_pending = time_.pending(id);
    const auto result = time_.cancel(id);
    cancelled_ += was_pending;
    CHECK((result == cancel_result::gone || result == cancel_result::running || was_pending));
  }

  void reschedule() {
    if (ids_.empty()) return;
    const auto id = ids_[choices_.below(ids_.size())];
    const bool was_pending = time_.pending(id);
    CHECK(time_.reschedule_after(id, duration(choices_.below(10'000'000))) == was_pending);
  }

  void take(job j) {
    const auto what = choices_.below(10);
    if (what == 0) return;  // drops it
    if (what < 4) {
      j();
    } else {
      jobs_.push_back(std::move(j));
    }
    if (what < 9) return;
    ++refused_;
    throw std::runtime_error("no");
  }

  void run_a_job() {
    if (jobs_.empty()) return;
    job j = take_one();
    j();
  }

  void drop_a_job() {
    if (!jobs_.empty()) take_one();
  }

  job take_one() {
    std::swap(jobs_[choices_.below(jobs_.size())], jobs_.back());
    job j = std::move(jobs_.back());
    jobs_.pop_back();
    return j;
  }

  void check_counts(const statistics& s) {
    CHECK(adds_up(s));
    CHECK(s.scheduled == ids_.size());
    CHECK(s.fired == ran_);
    CHECK(s.missed == missed_);
    CHECK(s.cancelled == cancelled_);
    CHECK(s.failed == threw_ + refused_);
    CHECK(s.failed == reported_);
    CHECK(s.pending == time_.pending());
    CHECK(static_cast<std::uint64_t>(token_.use_count()) == s.pending + 1);  // one callable for each timer
    std::uint64_t alive = 0;
    for (const timer_id id : ids_) alive += time_.pending(id);
    CHECK(alive == s.pending);
  }

  void stop() {
    const statistics before = time_.stats();
    auto list = time_.stop();
    CHECK(list.size() == before.pending);
    jobs_.clear();
    const statistics after = time_.stats();
    CHECK(after.returned == before.pending);
    CHECK(after.rejected == before.rejected);
    CHECK(adds_up(after));
    list.clear();
    CHECK(token_.use_count() == 1);
  }

  choices choices_;
  random_plans plans_{choices_, 4'000'000};
  std::shared_ptr<int> token_ = std::make_shared<int>(0);
  std::vector<timer_id> ids_;
  std::vector<job> jobs_;
  std::uint64_t ran_ = 0, one_shots_ran_ = 0, missed_ = 0, threw_ = 0, reported_ = 0, refused_ = 0,
                cancelled_ = 0;
  manual_timer time_;  // the last member, because its tasks use the others
};

TEST_CASE("with an executor that runs, keeps, drops and refuses jobs, all counts add up") {
  for (const std::uint64_t seed : seeds("random executors", 100)) {
    CAPTURE(seed);
    program(seed).run(400);
  }
}

}  // namespace scheduler_random_executors
