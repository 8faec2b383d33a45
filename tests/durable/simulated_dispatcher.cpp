#include "durable/simulated_dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace durable_test {

using namespace std::chrono_literals;
namespace detail = rondo::durable::detail;
using detail::turns;

detail::turn_result observed_session::take(const turn& what) {
  const scoped_turn now(*this, what);
  has_failed_ = true;
  by_.sends(what, of_.state());
  try {
    auto done = inner_->take(what);
    has_failed_ = !done.locked.empty();
    by_.took(what, done);
    return done;
  } catch (const rondo::durable::store_error& e) {
    by_.failed(what, e.perhaps_done());
    throw;
  }
}

observed_session::woken observed_session::is_woken() {
  if (std::exchange(interrupted_, false)) {
    static_cast<void>(inner_->wait());
    return woken::interrupted;
  }
  return inner_->wait() ? woken::news : woken::no;
}

simulated_dispatcher::simulated_dispatcher(rondo::scheduler& on, detail::engine& database,
                                           const std::string& owner,
                                           const rondo::durable::dispatcher_options& options,
                                           const rondo::durable::task_handler& handler, std::uint64_t seed,
                                           turn_watcher& by)
    : options_(options),
      errors_(options_.on_error),
      session_(
          database.connect(owner, {options_.queues, options_.window, options_.lease, options_.max_attempts}),
          *this, by),
      inbox_(session_),
      wheel_(on, inbox_, held_),
      runs_(options_.threads, inbox_),
      attempt_(on, counters_, errors_, handler),
      turns_({on, session_, inbox_, held_, runs_, wheel_, counters_, errors_}, options_,
             handler.is_stoppable(), seed) {
  wheel_.start(std::min(turns::look_every(options_), session_.look_every()), options_.lease / 3);
}

bool simulated_dispatcher::is_awake(rondo::time_point now) {
  if (phase_ == phase::stopped) return false;
  if (tell_at_) return now >= *tell_at_;
  if (!sleeps_) return true;
  const auto woken = session_.is_woken();
  if (woken == observed_session::woken::news) turns_.there_is_news();
  sleeps_ = woken == observed_session::woken::no;
  return !sleeps_;
}

void simulated_dispatcher::step(rondo::time_point now) {
  if (tell_at_) return tell(now);
  const turns::step done = turns_.next();
  sleeps_ = done == turns::step::nothing;
  if (done != turns::step::last) return;
  tell_at_ = now;
  tell_until_ = now + 2s;
}

/// As database_thread, but in virtual time.
void simulated_dispatcher::tell(rondo::time_point now) {
  const bool is_over = now >= *tell_until_;
  if (!turns_.all_is_told() && !(turns_.has_failed() && is_over)) {
    if (turns_.tell()) return;
    tell_at_ = now + 50ms;
    if (!is_over) return;
  }
  turns_.give_up();
  wheel_.stop();
  phase_ = phase::stopped;
}

std::optional<simulated_dispatcher::place> simulated_dispatcher::begin_next() noexcept {
  const auto next = runs_.begin_next();
  if (next) ++in_progress_;
  return next;
}

void simulated_dispatcher::end(place p) noexcept {
  runs_.end(p);
  --in_progress_;
  end_if_idle();
}

void simulated_dispatcher::stop() noexcept {
  phase_ = phase::stops;
  wheel_.stop_claiming();
  runs_.close();
  inbox_.raise(detail::inbox::closing);
  runs_.request_stop();
  end_if_idle();
}

void simulated_dispatcher::end_if_idle() noexcept {
  if (phase_ != phase::stops || in_progress_ != 0) return;
  phase_ = phase::tells;
  inbox_.raise(detail::inbox::last);
}

}  // namespace durable_test
