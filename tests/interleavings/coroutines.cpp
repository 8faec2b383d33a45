// Coroutines that sleep, and are asked to stop while they begin to sleep, while their timers fire, or at the end.
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <rondo/coroutine.hpp>

#include "detached.hpp"
#include "interleavings/explored_scheduler.hpp"

#ifdef __cpp_lib_jthread

namespace interleavings_coroutines {

using namespace rondo;
using namespace rondo::test;

/// Does what std::stop_source does with one callback, whose waits the explorer would not see.
class explored_stop {
 public:
  void request_stop() {
    const detail::asker* called = nullptr;
    {
      const std::lock_guard hold(mutex_);
      if (std::exchange(is_requested_, true)) return;
      called = caller_of(this_thread());
    }
    if (called == nullptr) return;
    (*called)();
    is_over_.set();
  }
  /// As the constructor of a stop_callback.
  void add(const detail::asker& callback) {
    {
      const std::lock_guard hold(mutex_);
      if (!is_requested_) return void(callback_ = &callback);
    }
    callback();
  }
  /// As its destructor, which waits for a call on another thread.
  void remove() {
    {
      const std::lock_guard hold(mutex_);
      if (std::exchange(callback_, nullptr) != nullptr) return;
      if (caller_ == nobody || caller_ == this_thread()) return;
    }
    is_over_.wait();
  }

 private:
  const detail::asker* caller_of(std::size_t thread) {
    if (callback_ != nullptr) caller_ = thread;
    return std::exchange(callback_, nullptr);
  }

  explored_mutex mutex_{"stop"};
  explored_event is_over_;
  bool is_requested_ = false;
  std::size_t caller_ = nobody;
  const detail::asker* callback_ = nullptr;
};

/// As detail::stoppable_sleep, but with an explored_stop.
class explored_sleep {
 public:
  explored_sleep(scheduler& s, duration d, explored_stop& stop) : scheduler_(s), delay_(d), stop_(stop) {}
  explored_sleep(const explored_sleep&) = delete;
  explored_sleep& operator=(const explored_sleep&) = delete;
  ~explored_sleep() {
    if (wait_ == nullptr) return;
    stop_.remove();
    wait_->abandon();
  }

  bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiting) {
    const auto begun = wait_ = std::make_shared<detail::wait>(scheduler_, waiting);
    asking_ = {begun};
    stop_.add(asking_);
    return detail::wait::begin(begun, delay_);
  }
  bool await_resume() {
    stop_.remove();
    return std::exchange(wait_, nullptr)->slept();
  }

 private:
  scheduler& scheduler_;
  const duration delay_;
  explored_stop& stop_;
  std::shared_ptr<detail::wait> wait_;
  detail::asker asking_;
};

/// A coroutine that sleeps until 1 ms. It is 1 ms, but no pass has begun.
class nap_stage {
 public:
  nap_stage() = default;
  nap_stage(const nap_stage&) = delete;
  nap_stage& operator=(const nap_stage&) = delete;

  explored_core& core() { return scheduler_.core(); }

  void begin() {
    const auto owned = std::make_shared<int>();
    alive_ = owned;
    sleep(owned).start();
  }
  void request_stop() {
    stop_.request_stop();
    is_asked_.store(true, std::memory_order_relaxed);
  }
  void stop() {
    core().stop();
    is_stopped_ = true;
  }

  /// Called when the threads are done.
  void check() {
    if (!is_asked_.load() && !is_stopped_) core().pass();
    expect(alive_.expired(), "the coroutine has ended");
    expect(ends_.load() == 1, "the coroutine has ended once");
    expect(how_ != end::asked || is_asked_.load(), "it is asked only if there was a request");
    expect(how_ != end::dropped || is_stopped_, "it is dropped only if the scheduler stops");
    const statistics s = core().stats();
    expect(how_ != end::slept || s.fired == 1, "it sleeps to the end only if its timer fires");
    expect(s.pending == 0 && adds_up(s), "it leaves no timer behind");
  }

 private:
  enum class end { none, slept, asked, dropped };

  detached sleep(std::shared_ptr<int>) {
    end how = end::dropped;
    try {
      const bool slept = co_await explored_sleep(scheduler_, 0ms, stop_);
      how = slept ? end::slept : end::asked;
    } catch (const stopped_error&) {
    }
    how_ = how;
    ends_.fetch_add(1, std::memory_order_relaxed);
  }

  explored_atomic<bool> is_asked_;  // by any of several threads
  bool is_stopped_ = false;
  end how_ = end::none;
  explored_atomic<int> ends_;
  std::weak_ptr<int> alive_;
  explored_stop stop_;
  explored_scheduler scheduler_;
};

struct act {
  const char* name;
  std::function<void(nap_stage&)> what;
};

/// `sleeps`: whether the coroutine has begun to sleep.
auto on_nap_stage(bool sleeps, std::vector<act> acts) {
  return [=] {
    const auto s = std::make_shared<nap_stage>();
    if (sleeps) s->begin();
    scenario what;
    for (const act& a : acts) what.threads.push_back({a.name, [s, a] { a.what(*s); }});
    what.check = [s] { s->check(); };
    return what;
  };
}

const act begin{"sleeps", [](nap_stage& s) { s.begin(); }};
const act pass{"driver", [](nap_stage& s) { s.core().pass(); }};
const act request_stop{"requests a stop", [](nap_stage& s) { s.request_stop(); }};
const act stop{"stops the scheduler", [](nap_stage& s) { s.stop(); }};

TEST_CASE("a coroutine is asked to stop while its timer fires") {
  check_every_schedule(on_nap_stage(true, {request_stop, pass}));
  check_every_schedule(on_nap_stage(true, {request_stop, request_stop, pass}), few);
}

TEST_CASE("a coroutine is asked to stop while it begins to sleep, and its timer may already fire") {
  check_every_schedule(on_nap_stage(false, {begin, request_stop}));
  check_every_schedule(on_nap_stage(false, {begin, pass}));
  check_every_schedule(on_nap_stage(false, {begin, request_stop, pass}), few);
}

TEST_CASE("a coroutine is asked to stop while the scheduler stops") {
  check_every_schedule(on_nap_stage(true, {request_stop, stop}));
  check_every_schedule(on_nap_stage(false, {begin, request_stop, stop}), few);
}

TEST_CASE("whoever asks a coroutine that has just suspended knows its timer") {
  const with_updates_as_steps counting;
  check_small(on_nap_stage(false, {begin, request_stop}), 1, 1);
}

}  // namespace interleavings_coroutines

#endif
