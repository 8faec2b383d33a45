#include "values/interruption.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace rondo::detail {

namespace {

// Memory order: a task is counted here before it is scheduled, which locks a shard. Who looks here has locked all shards:
// see core::interrupt_all().
constinit std::atomic<std::size_t> interruptions{0};

}  // namespace

interruption::interruption() noexcept { interruptions.fetch_add(1, std::memory_order_relaxed); }

interruption::~interruption() { interruptions.fetch_sub(1, std::memory_order_relaxed); }

bool interruption::any() noexcept { return interruptions.load(std::memory_order_relaxed) != 0; }

#ifdef __cpp_lib_jthread

void interruption::request_stop(std::uint64_t timer) noexcept {
  const auto next_to_ask = [&] {
    const std::lock_guard hold(mutex_);
    if (timer != timer_) return std::stop_source(std::nostopstate);
    requested_ = true;
    const interruptible_run* run = first_;
    while (run != nullptr && run->source_.stop_requested()) run = run->next_;
    return run != nullptr ? run->source_ : std::stop_source(std::nostopstate);
  };
  for (;;) {
    const std::stop_source next = next_to_ask();
    if (!next.stop_possible()) return;
    next.request_stop();  // the run may have ended in the meantime
  }
}

void interruption::leave_timer() noexcept {
  const std::lock_guard hold(mutex_);
  ++timer_;
  requested_ = false;
}

void interruption::add(interruptible_run& run) noexcept {
  const std::lock_guard hold(mutex_);
  run.next_ = std::exchange(first_, &run);
  if (requested_) run.source_.request_stop();  // no callback is registered yet
}

void interruption::remove(interruptible_run& run) noexcept {
  const std::lock_guard hold(mutex_);
  interruptible_run** link = &first_;
  while (*link != &run) link = &(*link)->next_;
  *link = run.next_;
}

std::shared_ptr<interruption> make_interruption() { return std::make_shared<interruption>(); }

interruptible_run::interruptible_run(std::shared_ptr<interruption> of) : of_(std::move(of)) {
  of_->add(*this);
}

interruptible_run::~interruptible_run() { of_->remove(*this); }

#else

void interruption::request_stop(std::uint64_t) noexcept {}
void interruption::leave_timer() noexcept {}

#endif

}  // namespace rondo::detail
