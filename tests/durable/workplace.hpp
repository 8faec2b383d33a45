// Shared by the tests of dispatchers: a database on virtual time, whose turns can be made to fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rondo/durable.hpp>
#include <rondo/manual_timer.hpp>

#include "durable/engine.hpp"
#include "durable/sql_database.hpp"
#include "durable/store_access.hpp"
#include "threads/patience.hpp"

namespace durable_test {

using namespace rondo::durable;  // whose `task` is not the callable of that name
namespace detail = rondo::durable::detail;
using rondo::duration;
using rondo::manual_timer;
using rondo::test::gate;
using rondo::test::patience;

/// Checks the condition repeatedly. Returns false if that took too long.
template <class Condition>
bool eventually(const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// Controls and records the turns of all dispatchers of a workplace.
class line_to_the_database {
 public:
  enum class fault { none, before, after, lost, locked };

  /// Makes the next `turns` turns fail (-1: all of them), before anything is done, or afterwards so that the answer is
  /// lost; or the request is lost, and nobody knows which it was. Or they succeed, but find the tasks that should begin locked, and do nothing else.
  void fail(int turns, fault how = fault::before) {
    const std::lock_guard hold(mutex_);
    left_ = turns;
    how_ = how;
  }
  void mend() { fail(0); }

  std::vector<detail::turn> turns() const {
    const std::lock_guard hold(mutex_);
    return turns_;
  }
  std::size_t count() const {
    const std::lock_guard hold(mutex_);
    return turns_.size();
  }

  /// `f` is called with each turn before it is executed.
  void on_turn(std::function<void(const detail::turn&)> f) {
    const std::lock_guard hold(mutex_);
    hook_ = std::move(f);
  }

  /// `f` is called after each executed turn, before its answer arrives.
  void after_turn(std::function<void(const detail::turn&)> f) {
    const std::lock_guard hold(mutex_);
    after_ = std::move(f);
  }

  /// `f` is called before a dispatcher asks whether somebody has changed the database.
  void on_question(std::function<void()> f) {
    const std::lock_guard hold(mutex_);
    question_ = std::move(f);
  }

  // From the session.

  void asked() {
    std::unique_lock hold(mutex_);
    const auto hook = question_;
    hold.unlock();
    if (hook) hook();
  }

  void made(const detail::turn& t) {
    std::unique_lock hold(mutex_);
    const auto hook = after_;
    hold.unlock();
    if (hook) hook(t);
  }

  fault next(const detail::turn& t) {
    std::unique_lock hold(mutex_);
    turns_.push_back(t);
    if (const auto hook = hook_) {
      hold.unlock();
      hook(t);
      hold.lock();
    }
    if (left_ == 0) return fault::none;
    if (left_ > 0) --left_;
    return how_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<detail::turn> turns_;
  std::function<void(const detail::turn&)> hook_, after_;
  std::function<void()> question_;
  int left_ = 0;
  fault how_ = fault::none;
};

/// Tracks whether a dispatcher waits, so that a test knows when nothing is in progress.
class rest_stop {
 public:
  void ask() {
    const std::lock_guard hold(mutex_);
    ++asked_;
    changed_.notify_all();
  }
  /// Acts as if somebody had submitted a task that is due soon.
  void notify() {
    const std::lock_guard hold(mutex_);
    notified_ = true;
    ++asked_;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock hold(mutex_);
    waiting_ = true;
    changed_.wait(hold, [this] { return asked_ != taken_; });
    waiting_ = false;
    taken_ = asked_;
    return std::exchange(notified_, false);
  }
  /// How often it was asked, or std::nullopt while it is at work.
  std::optional<unsigned long> at_rest() const {
    const std::lock_guard hold(mutex_);
    return waiting_ && asked_ == taken_ ? std::optional(asked_) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  unsigned long asked_ = 0, taken_ = 0;
  bool waiting_ = false, notified_ = false;
};

/// Before each turn, the engine's clock is told the time.
class told_session final : public detail::session {
 public:
  told_session(std::unique_ptr<detail::session> of, sql_database& base) : of_(std::move(of)), base_(base) {}

  detail::turn_result take(const detail::turn& t) override {
    base_.tell_time();
    return of_->take(t);
  }
  bool wait() override { return of_->wait(); }
  bool changed() override { return of_->changed(); }
  duration look_every() const override { return of_->look_every(); }
  void interrupt() noexcept override { of_->interrupt(); }

 private:
  const std::unique_ptr<detail::session> of_;
  sql_database& base_;
};

class watched_session final : public detail::session {
 public:
  watched_session(std::unique_ptr<detail::session> of, line_to_the_database& line,
                  std::shared_ptr<rest_stop> rest, const duration& look_every)
      : of_(std::move(of)), line_(line), rest_(std::move(rest)), look_every_(look_every) {}

  detail::turn_result take(const detail::turn& t) override {
    const auto fault = line_.next(t);
    if (fault == line_to_the_database::fault::before) throw store_error("the line is cut");
    if (fault == line_to_the_database::fault::lost) throw store_error("the answer is lost", true);
    detail::turn_result done;
    if (fault == line_to_the_database::fault::locked) {
      done.locked = t.begun;
      return done;
    }
    done = of_->take(t);
    line_.made(t);
    if (fault == line_to_the_database::fault::after) throw store_error("the answer is lost", true);
    return done;
  }
  bool wait() override { return rest_->wait(); }
  bool changed() override {
    line_.asked();
    return of_->changed();
  }
  duration look_every() const override { return look_every_; }
  void interrupt() noexcept override { rest_->ask(); }

 private:
  const std::unique_ptr<detail::session> of_;
  line_to_the_database& line_;
  const std::shared_ptr<rest_stop> rest_;
  const duration look_every_;
};

class watched_engine final : public detail::engine {
 public:
  explicit watched_engine(sql_database& base) : base_(base), of_(base.open()) {}

  std::int64_t submit(const detail::due_time& due, const submission& what, const transaction* in) override {
    return of().submit(due, what, in);
  }
  std::vector<std::int64_t> submit_all(std::span<const planned> all, const transaction* in) override {
    return of().submit_all(all, in);
  }
  std::int64_t repeat(const repeated& what, const transaction* in) override { return of().repeat(what, in); }
  bool cancel(std::int64_t id, const transaction* in) override { return of().cancel(id, in); }
  bool cancel(const std::string& queue, const std::string& key, const transaction* in) override {
    return of().cancel(queue, key, in);
  }
  bool reschedule(std::int64_t id, const detail::due_time& due, const transaction* in) override {
    return of().reschedule(id, due, in);
  }
  std::optional<task> find(std::int64_t id, const transaction* in) override { return of().find(id, in); }
  bool reschedule(const std::string& queue, const std::string& key, const detail::due_time& due,
                  const transaction* in) override {
    return of().reschedule(queue, key, due, in);
  }
  std::optional<task> find(const std::string& queue, const std::string& key, const transaction* in) override {
    return of().find(queue, key, in);
  }
  void pause(const std::string& queue) override { of().pause(queue); }
  void resume(const std::string& queue) override { of().resume(queue); }
  bool paused(const std::string& queue) override { return of().paused(queue); }
  std::vector<listed> list(const std::string& queue, std::optional<task_state> only, std::int64_t after_id,
                           std::size_t limit) override {
    return of().list(queue, only, after_id, limit);
  }
  bool retry(std::int64_t id) override { return of().retry(id); }
  std::unique_ptr<detail::session> connect(const std::string& owner,
                                           const detail::claim_rules& rules) override {
    auto rest = std::make_shared<rest_stop>();
    auto s = std::make_unique<watched_session>(plain(owner, rules), line, rest, look_every);
    rests.push_back(std::move(rest));
    return s;
  }
  /// A session that nobody watches.
  std::unique_ptr<detail::session> plain(const std::string& owner, const detail::claim_rules& rules) {
    return std::make_unique<told_session>(of().connect(owner, rules), base_);
  }

  line_to_the_database line;
  std::vector<std::shared_ptr<rest_stop>> rests;  // one for each dispatcher, in the order of construction
  duration look_every = duration::max();          // as if the database notified

 private:
  detail::engine& of() {
    base_.tell_time();
    return *of_;
  }

  sql_database& base_;
  const std::shared_ptr<detail::engine> of_;
};

/// A database, a scheduler, and their common time.
class workplace {
 public:
  workplace() = default;

  manual_timer time;

  static constexpr wall_time beginning{std::chrono::hours(24 * 365 * 50)};
  wall_time wall() const {
    return beginning + time.now().time_since_epoch() + std::chrono::microseconds(step_);
  }
  /// Sets the host's clock, which does not move the scheduler's.
  void step_clock(std::chrono::microseconds by) { step_ += by.count(); }

 private:
  std::atomic<std::int64_t> step_{0};

 public:
  const std::unique_ptr<sql_database> base = new_sql_database([this] { return wall(); });
  const std::shared_ptr<watched_engine> watched = std::make_shared<watched_engine>(*base);
  std::unique_ptr<store> tasks = detail::store_access::make(watched);

  /// As sql_database::ask().
  std::string ask(const std::string& sql) const { return base->ask(sql); }

  std::vector<std::int64_t> submit_many(std::size_t count, duration delay) {
    return tasks->submit_all(std::vector<planned>(count, {.what = {}, .when = delay}));
  }

  line_to_the_database& line() { return watched->line; }
  rest_stop& rest(std::size_t dispatcher = 0) { return *watched->rests.at(dispatcher); }

  /// Waits until the first dispatcher has done all that it can before time passes or its handlers return.
  [[nodiscard]] bool rests() {
    return eventually([&] { return rest().at_rest().has_value(); });
  }

  /// Lines given to on_error.
  std::vector<std::string> errors() const {
    const std::lock_guard hold(mutex_);
    return errors_;
  }
  bool was_told(const std::string& part) const {
    return std::ranges::any_of(errors(), [&](const auto& e) { return e.find(part) != std::string::npos; });
  }

  /// Options with the defaults, except that errors go to errors().
  dispatcher_options options() {
    dispatcher_options o;
    o.on_error = [this](const std::string& line) {
      const std::lock_guard hold(mutex_);
      errors_.push_back(line);
    };
    return o;
  }

  /// Waits until the dispatchers have nothing to do before time passes. Their handlers must not wait for the test.
  [[nodiscard]] bool settle(const std::vector<const dispatcher*>& all) const {
    return eventually([&] {
      const auto before = who_rests();
      const auto runs = [](const dispatcher* d) { return d->stats().running != 0; };
      const auto rests = [](const auto& r) { return r.has_value(); };
      return std::ranges::all_of(before, rests) && std::ranges::none_of(all, runs) && who_rests() == before;
    });
  }
  /// Lets time pass in steps, and in each waits until everything due is done.
  void pass(duration d, const std::vector<const dispatcher*>& all, duration step = 100ms) {
    REQUIRE(settle(all));
    for (; d > duration::zero(); d -= step) {
      time.advance(std::min(d, step));
      REQUIRE(settle(all));
    }
  }

 private:
  std::vector<std::optional<unsigned long>> who_rests() const {
    std::vector<std::optional<unsigned long>> all;
    for (const auto& r : watched->rests) all.push_back(r->at_rest());
    return all;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> errors_;
};

/// Records what handlers were called with, and when.
class diary {
 public:
  struct entry {
    task what;
    wall_time at;
  };

  explicit diary(const workplace& of) : at_(of) {}

  void write(const task& t) {
    const wall_time now = at_.wall();
    const std::lock_guard hold(mutex_);
    entries_.push_back({t, now});
  }
  auto handler() {
    return [this](const task& t) { write(t); };
  }

  std::vector<entry> entries() const {
    const std::lock_guard hold(mutex_);
    return entries_;
  }
  std::size_t size() const { return entries().size(); }
  std::vector<std::int64_t> ids() const {
    std::vector<std::int64_t> all;
    for (const entry& e : entries()) all.push_back(e.what.id);
    return all;
  }

 private:
  const workplace& at_;
  mutable std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace durable_test
