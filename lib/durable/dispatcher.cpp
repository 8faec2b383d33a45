#include <rondo/durable.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#include "durable/dispatcher/attempt.hpp"
#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/reports.hpp"
#include "durable/dispatcher/held_tasks.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/dispatcher/turns.hpp"
#include "durable/dispatcher/wheel_jobs.hpp"
#include "durable/engine.hpp"
#include "durable/store_access.hpp"
#include "durable/text.hpp"

namespace rondo::durable {

using namespace std::chrono_literals;

namespace {

void refuse_unless(bool is_right, const std::string& what) {
  if (!is_right) throw std::invalid_argument("rondo: " + what);
}

template <class Number>
void refuse_unless_positive(const char* what, Number n) {
  refuse_unless(n > 0, std::string(what) + " must be positive, not " + std::to_string(n));
}

std::string text_of(duration d) { return std::to_string(d.count()) + "ns"; }

dispatcher_options checked(dispatcher_options o, const task_handler& handler) {
  refuse_unless(static_cast<bool>(handler), "a dispatcher needs a handler");
  refuse_unless(!o.queues.empty(), "a dispatcher needs a queue");
  for (const std::string& queue : o.queues) detail::check_queue(queue);
  refuse_unless(o.window > duration::zero(), "window must be positive, not " + text_of(o.window));
  refuse_unless(o.lease >= 100ms, "lease must be at least 100ms, not " + text_of(o.lease));
  refuse_unless_positive("max_held", o.max_held);
  refuse_unless_positive("max_attempts", o.max_attempts);
  refuse_unless(o.first_retry >= duration::zero(),
                "first_retry must not be negative: " + text_of(o.first_retry));
  refuse_unless(o.longest_retry >= duration::zero(),
                "longest_retry must not be negative: " + text_of(o.longest_retry));
  refuse_unless_positive("threads", o.threads);
  refuse_unless_positive("max_held_bytes", o.max_held_bytes);
  o.max_held = std::min<std::size_t>(
      o.max_held, std::numeric_limits<std::int32_t>::max());  // databases count with a sign
  return o;
}

std::uint64_t fresh_seed() {
  try {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  } catch (const std::exception&) {  // the system has no source of randomness
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
}

/// "host:1234:7182818284590452353"
std::string owner_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  return std::string(host.data()) + ':' + std::to_string(getpid()) + ':' + std::to_string(fresh_seed());
}

// How long stop() waits for a database that does not answer, and how often it tries. Both are real time, as a
// manual_timer may stand still.
constexpr auto last_wait = 2s;
constexpr auto last_rest = 50ms;

/// The dispatcher that owns this thread, or null.
thread_local const void* own_dispatcher = nullptr;

}  // namespace

namespace detail {

/// The thread that talks to the database. Takes one step after the other, and waits for the session while there is nothing to
/// do.
class database_thread {
 public:
  /// All of these outlive this object. Only this thread uses `steps`.
  database_thread(session& database, inbox& arrivals, turns& steps) noexcept
      : session_(database), inbox_(arrivals), turns_(steps) {}

  /// Runs until end(), and at most two seconds longer if the database does not answer then.
  void run() noexcept {
    using step = turns::step;
    for (;;) {
      const step done = turns_.next();
      if (done == step::last) return tell_the_last();
      if (done == step::nothing && session_.wait()) turns_.there_is_news();
    }
  }

  /// No run is left: reports the rest, and ends. From one other thread, once.
  void end() noexcept {
    end_at_ = std::chrono::steady_clock::now();
    inbox_.raise(inbox::last);
  }

 private:
  void tell_the_last() noexcept {
    const auto is_over = [this] { return std::chrono::steady_clock::now() >= end_at_ + last_wait; };
    while (!turns_.all_is_told()) {
      if (turns_.has_failed() && is_over())
        break;  // the turn that was in progress; the next may take as long
      if (turns_.tell()) continue;
      if (is_over()) break;
      std::this_thread::sleep_for(last_rest);
    }
    turns_.give_up();
  }

  session& session_;
  inbox& inbox_;
  turns& turns_;
  std::chrono::steady_clock::time_point end_at_;  // when stop() had nothing else to wait for
};

}  // namespace detail

class dispatcher::implementation {
 public:
  implementation(scheduler& on, const store& from, task_handler handler, dispatcher_options options)
      : options_(checked(std::move(options), handler)),
        is_stoppable_(handler.is_stoppable()),
        errors_(options_.on_error),
        engine_(detail::store_access::engine_of(from)),
        session_(engine_->own().connect(
            owner_name(), {options_.queues, options_.window, options_.lease, options_.max_attempts})),
        inbox_(*session_),
        wheel_(on, inbox_, held_),
        runs_(options_.threads, inbox_),
        threads_(options_.threads, runs_, mine(detail::attempt(on, counters_, errors_, std::move(handler)))),
        turns_({on, *session_, inbox_, held_, runs_, wheel_, counters_, errors_}, options_, is_stoppable_,
               fresh_seed()),
        database_(*session_, inbox_, turns_) {
    const duration look = detail::turns::look_every(options_);
    wheel_.start(std::min(look, session_->look_every()), options_.lease / 3);
    database_thread_ = std::thread([this] {
      own_dispatcher = this;
      database_.run();
    });
  }

  bool is_copy() const noexcept { return engine_->is_copy(); }

  void stop() {
    if (own_dispatcher == this) throw std::logic_error("rondo: a dispatcher cannot be stopped from inside");
    const std::lock_guard one_at_a_time(stop_);
    if (!database_thread_.joinable()) return;
    wheel_.stop_claiming();
    runs_.close();
    inbox_.raise(detail::inbox::closing);
    runs_.request_stop();
    threads_.join();  // the database thread still renews the leases of the runs in progress
    database_.end();
    database_thread_.join();
    wheel_.stop();
  }

  dispatcher_statistics stats() const {
    dispatcher_statistics s = counters_.snapshot();
    s.held = held_.size();
    s.running = runs_.size();
    return s;
  }

 private:
  std::function<void(detail::run&)> mine(detail::attempt a) const {
    return [this, a = std::move(a)](detail::run& r) {
      own_dispatcher = this;
      a(r);
    };
  }

  const dispatcher_options options_;
  const bool is_stoppable_;
  const detail::error_reports errors_;
  detail::counters counters_;
  const std::shared_ptr<detail::engine> engine_;
  const std::unique_ptr<detail::session> session_;
  detail::inbox inbox_;
  detail::held_tasks held_;
  detail::wheel_jobs wheel_;
  detail::begun_runs runs_;
  detail::handler_threads threads_;
  detail::turns turns_;
  detail::database_thread database_;
  std::mutex stop_;
  std::thread database_thread_;
};

dispatcher::dispatcher(scheduler& on, store& from, task_handler handler, dispatcher_options options)
    : impl_(std::make_unique<implementation>(on, from, std::move(handler), std::move(options))) {}

dispatcher::~dispatcher() {
  stop();
  // The child has copies of locks that may be held, and of threads that do not exist there: none can be destroyed.
  if (impl_->is_copy()) static_cast<void>(impl_.release());
}

void dispatcher::stop() {
  if (!impl_->is_copy()) impl_->stop();
}

dispatcher_statistics dispatcher::stats() const { return impl_->stats(); }

}  // namespace rondo::durable
