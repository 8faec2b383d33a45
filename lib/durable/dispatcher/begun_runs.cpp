#include "durable/dispatcher/begun_runs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rondo::durable::detail {

std::size_t begun_runs::room() const {
  const std::lock_guard hold(mutex_);
  const std::size_t wanted = threads_ + ahead_;
  const std::size_t there = waiting_.size() + in_progress_.size();
  return closed_ || there >= wanted ? 0 : wanted - there;
}

std::size_t begun_runs::size() const {
  const std::lock_guard hold(mutex_);
  return waiting_.size() + in_progress_.size();
}

std::vector<ticket> begun_runs::in_progress() const {
  const std::lock_guard hold(mutex_);
  std::vector<ticket> all;
  for (const run& r : in_progress_) all.push_back(r.of());
  return all;
}

std::vector<ticket> begun_runs::tickets() const {
  const std::lock_guard hold(mutex_);
  std::vector<ticket> all;
  for (const run_list* list : {&waiting_, &in_progress_})
    for (const run& r : *list) all.push_back(r.of());
  return all;
}

std::vector<ticket> begun_runs::untold() const {
  const std::lock_guard hold(mutex_);  // as in end(), so that no run is missed on its way
  std::vector<ticket> all;
  for (const run_list* list : {&waiting_, &in_progress_})
    for (const run& r : *list) all.push_back(r.of());
  inbox_.add_ended_to(all);
  return all;
}

void begun_runs::put_beginnings_into(turn& t) const {
  const std::lock_guard hold(mutex_);
  for (const run_list* list : {&waiting_, &in_progress_})
    for (const run& r : *list) put_beginning(r, t);
}

void begun_runs::add(run_list& begun) noexcept {
  if (begun.empty()) return;
  const std::lock_guard hold(mutex_);
  waiting_.splice(waiting_.end(), begun);
  added_.notify_all();
}

void begun_runs::ended(std::size_t n) noexcept {
  const std::lock_guard hold(mutex_);
  // A transaction in which no run ended says little: it may have been a short one.
  ahead_ = std::max(std::min(2 * n, most_ahead), ahead_ / 2);
}

run_list begun_runs::take_waiting(time_point lease_before) noexcept {
  const std::lock_guard hold(mutex_);
  // An idle thread is about to come for each of the first ones.
  const auto idle = static_cast<run_list::difference_type>(closed_ ? 0 : threads_ - in_progress_.size());
  const auto first = std::ranges::next(waiting_.begin(), idle, waiting_.end());
  // Their leases were counted from when they began, so they run out in this order.
  const auto end =
      std::find_if(first, waiting_.end(), [&](const run& r) { return r.lease_until >= lease_before; });
  run_list taken;
  taken.splice(taken.end(), waiting_, first, end);
  return taken;
}

run_list begun_runs::take_waiting() noexcept {
  const std::lock_guard hold(mutex_);
  run_list taken;
  taken.splice(taken.end(), waiting_);
  return taken;
}

void begun_runs::close() noexcept {
  const std::lock_guard hold(mutex_);
  closed_ = true;
  added_.notify_all();
}

/// The callbacks run without the lock, as they may take long, or ask for statistics.
template <class Condition>
void begun_runs::request_stop_if(Condition holds) noexcept {
#ifdef __cpp_lib_jthread
  const auto next = [&] {
    const std::lock_guard hold(mutex_);
    for (const run_list* list : {&waiting_, &in_progress_})
      for (const run& r : *list)
        if (r.stop.stop_possible() && !r.stop.stop_requested() && holds(r)) return r.stop;
    return std::stop_source(std::nostopstate);
  };
  for (std::stop_source one = next(); one.stop_possible(); one = next()) one.request_stop();
#else
  static_cast<void>(holds);
#endif
}

void begun_runs::request_stop(const std::vector<ticket>& of) noexcept {
  if (of.empty()) return;
  request_stop_if([&](const run& r) { return std::ranges::find(of, r.of()) != of.end(); });
}

void begun_runs::request_stop() noexcept {
  request_stop_if([](const run&) { return true; });
}

std::optional<begun_runs::place> begun_runs::begin_next() noexcept {
  const std::lock_guard hold(mutex_);
  if (closed_ || waiting_.empty()) return std::nullopt;
  const auto next = waiting_.begin();
  in_progress_.splice(in_progress_.end(), waiting_, next);
  return next;
}

bool begun_runs::wait() noexcept {
  std::unique_lock hold(mutex_);
  added_.wait(hold, [this] { return closed_ || !waiting_.empty(); });
  return !closed_;
}

void begun_runs::end(place ended) noexcept {
  // Under the lock, so that the run is always counted in one of the two places.
  const std::lock_guard hold(mutex_);
  inbox_.ended(in_progress_, ended);
}

handler_threads::handler_threads(std::size_t threads, begun_runs& runs, std::function<void(run&)> body)
    : runs_(runs), body_(std::move(body)) {
  try {
    for (std::size_t i = 0; i != threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system cannot create another thread
    runs_.close();
    join();
    throw;
  }
}

handler_threads::~handler_threads() {
  runs_.close();
  join();
}

void handler_threads::join() {
  for (std::thread& t : threads_)
    if (t.joinable()) t.join();
}

void handler_threads::work() noexcept {
  do {
    while (const auto mine = runs_.begin_next()) {
      body_(**mine);
      runs_.end(*mine);
    }
  } while (runs_.wait());
}

}  // namespace rondo::durable::detail
