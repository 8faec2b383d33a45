// Waits with Asio's completion tokens, on virtual time.
#include "adapters/asio_results.hpp"

#include <cstddef>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#if __has_include(<boost/asio/deferred.hpp>)
#include <boost/asio/deferred.hpp>
#endif

#include "failing_new.hpp"

namespace adapters_asio {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

TEST_CASE("a wait ends at its deadline, not before") {
  manual_timer time;
  journal notes;
  async_wait_for(time, 5ms, ending(notes));
  CHECK(time.pending() == 1);
  CHECK(time.next_due() == at(5ms));
  time.advance(5ms - 1ns);
  CHECK(notes.take() == "");
  time.advance(1ns);
  CHECK(notes.take() == "ok");
  CHECK(time.stats().completed == 1);
  time.advance(1h);
  CHECK(notes.take() == "");
}

TEST_CASE("a wait takes durations and time points of any unit, and rounds up") {
  asio::io_context io;  // waits that are aborted at the end are posted to it
  std::vector<rondo::time_point> ends;
  manual_timer time({.tick = 1ns});
  const auto note = [&](error_code) { ends.push_back(time.now()); };
  using picoseconds = std::chrono::duration<long long, std::pico>;
  async_wait_for(time, picoseconds(1), note);
  async_wait_for(time, 0.25s, note);
  async_wait_for(time, 1min, note);
  async_wait_until(time, at(2min), note);
  async_wait_until(time, std::chrono::time_point<scheduler::clock, std::chrono::hours>(1h), note);
  async_wait_for(time, std::chrono::hours::max(), asio::bind_executor(io, note));
  async_wait_until(time, rondo::time_point::max(), asio::bind_executor(io, note));
  time.advance(24h);
  CHECK(ends == std::vector{at(1ns), at(250ms), at(1min), at(2min), at(1h)});
  CHECK(time.pending() == 2);
}

TEST_CASE("a wait that is due now ends in the driver's next pass: initiation never calls the handler") {
  manual_timer time;
  journal notes;
  async_wait_for(time, 0s, ending(notes));
  async_wait_for(time, -1h, ending(notes));
  async_wait_until(time, at(-1h), ending(notes));
  CHECK(notes.take() == "");
  time.advance(0s);
  CHECK(notes.take() == "ok ok ok");
}

TEST_CASE("a NaN is refused at once, and nothing is scheduled") {
  manual_timer time;
  journal notes;
  const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(async_wait_for(time, nan, ending(notes)), std::invalid_argument);
  CHECK(time.stats().scheduled == 0);
  CHECK(notes.take() == "");
}

TEST_CASE("a handler without an executor is called in its task, in the order of the tasks") {
  manual_timer time;
  journal notes;
  time.schedule_after(1ms, notes.noting("a"));
  async_wait_for(time, 1ms, [&](error_code) {
    notes.add("b");
    CHECK_THROWS_AS(time.advance(1ms), std::logic_error);  // called from inside
    async_wait_for(time, 0s, [&](error_code) { notes.add("d"); });
  });
  time.schedule_after(1ms, notes.noting("c"));
  time.advance(1ms);
  CHECK(notes.take() == "a b c d");
}

TEST_CASE("the handler is called through its executor, and nowhere else") {
  asio::io_context io;
  manual_timer time;
  journal notes;
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  async_wait_for(time, 1ms, ending_on(asio::make_strand(io), notes));
  async_wait_for(time, 1ms, ending_on(asio::any_io_executor(io.get_executor()), notes));
  time.advance(1ms);
  CHECK(notes.take() == "");
  CHECK(run_ready(io) >= 3);
  CHECK(notes.take() == "ok ok ok");
}

TEST_CASE("inside its executor the handler is called at once, as dispatch does") {
  asio::io_context io;
  manual_timer time;
  journal notes;
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  asio::post(io, [&] {
    time.advance(1ms);
    CHECK(notes.take() == "ok");
  });
  run_ready(io);
}

TEST_CASE("a wait is outstanding work: run does not return until the handler has been called") {
  asio::io_context io;
  manual_timer time;
  journal notes;
  CHECK_FALSE(has_work(io));
  SUBCASE("an executor of a known type") { async_wait_for(time, 1ms, ending_on(io.get_executor(), notes)); }
  SUBCASE("a type-erased executor") {
    async_wait_for(time, 1ms, ending_on(asio::any_io_executor(io.get_executor()), notes));
  }
  SUBCASE("a strand") { async_wait_for(time, 1ms, ending_on(asio::make_strand(io), notes)); }
  CHECK(has_work(io));
  time.advance(1ms);
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "ok");
}

TEST_CASE("a handler only needs to be movable, and what it holds is released before the next one is called") {
  manual_timer time;
  auto owned = std::make_unique<int>(42);
  std::weak_ptr<int> seen;
  auto shared = std::make_shared<int>(0);
  seen = shared;
  int value = 0;
  async_wait_for(time, 1ms,
                 [&value, p = std::move(owned), s = std::move(shared)](error_code) { value = *p; });
  CHECK_FALSE(seen.expired());
  async_wait_for(time, 1ms, [&](error_code) { CHECK(seen.expired()); });
  time.advance(1ms);
  CHECK(value == 42);
}

// An exception that get() throws is shared by the future's thread and the promise's, and the last one to release it
// destroys it. The reference count is inside libstdc++.so, where g++'s thread sanitizer cannot see it.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}

TEST_CASE("use_future") {
  manual_timer time;
  std::future<void> done = async_wait_for(time, 1ms, asio::use_future);
  CHECK(done.wait_for(0s) == std::future_status::timeout);
  time.advance(1ms);
  CHECK_NOTHROW(done.get());
  std::future<void> refused;
  time.stop();
  refused = async_wait_for(time, 1ms, asio::use_future);
  CHECK_THROWS_AS(refused.get(), boost::system::system_error);
}

#if __has_include(<boost/asio/deferred.hpp>)
TEST_CASE("deferred: the wait begins when the deferred operation is launched") {
  manual_timer time;
  journal notes;
  auto wait = async_wait_for(time, 1ms, asio::deferred);
  time.advance(1h);
  CHECK(time.stats().scheduled == 0);
  std::move(wait)(ending(notes));
  time.advance(1ms - 1ns);
  CHECK(notes.take() == "");
  time.advance(1ns);
  CHECK(notes.take() == "ok");
}
#endif

/// Counts its allocations.
template <class T>
struct counting_allocator {
  using value_type = T;
  int* held;
  int* total;
  counting_allocator(int* h, int* t) : held(h), total(t) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) : held(other.held), total(other.total) {}
  T* allocate(std::size_t n) {
    ++*held;
    ++*total;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    --*held;
    std::allocator<T>().deallocate(p, n);
  }
  bool operator==(const counting_allocator&) const = default;
};

struct allocating {
  using allocator_type = counting_allocator<char>;
  using executor_type = asio::io_context::executor_type;
  allocator_type allocator;
  executor_type executor;
  int* held_when_called;
  allocator_type get_allocator() const noexcept { return allocator; }
  executor_type get_executor() const noexcept { return executor; }
  void operator()(error_code) const { *held_when_called = *allocator.held; }
};

TEST_CASE("submission uses the handler's allocator, and the memory is free when the handler is called") {
  asio::io_context io;
  manual_timer time;
  int held = 0, total = 0, held_when_called = -1;
  async_wait_for(time, 1ms, allocating{{&held, &total}, io.get_executor(), &held_when_called});
  time.advance(1ms);
  CHECK(held == 1);
  run_ready(io);
  CHECK(held_when_called == 0);
  CHECK(total == 1);
}

TEST_CASE("an exception of a handler leaves its context, and affects no other handler") {
  asio::io_context io;
  manual_timer time;
  journal notes;
  async_wait_for(time, 1ms, asio::bind_executor(io, [](error_code) { throw std::runtime_error("no"); }));
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  time.advance(1ms);
  CHECK_THROWS_AS(io.poll(), std::runtime_error);
  run_ready(io);
  CHECK(notes.take() == "ok");
  CHECK(time.stats().failed == 0);
}

TEST_CASE(
    "on a stopped or drained scheduler a wait is aborted: the handler gets the error, nothing is thrown") {
  asio::io_context io;
  manual_timer time;
  journal notes;
  SUBCASE("stopped") { time.stop(); }
  SUBCASE("drained") { time.drain(1s); }
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  async_wait_until(time, at(1ms), ending_on(io.get_executor(), notes));
  CHECK(notes.take() == "");
  CHECK_FALSE(has_work(io));
  CHECK(notes.take() == "aborted aborted");
}

TEST_CASE("at the limit of timers a wait fails with no_buffer_space") {
  asio::io_context io;
  manual_timer time(options{.max_pending = 1});
  journal notes;
  std::vector<error_code> results;
  async_wait_for(time, 1ms, ending_on(io.get_executor(), notes));
  async_wait_for(time, 1ms, asio::bind_executor(io, [&](error_code e) { results.push_back(e); }));
  CHECK(results.empty());
  run_ready(io);
  CHECK(results == std::vector<error_code>{asio::error::no_buffer_space});
  time.advance(1ms);
  run_ready(io);
  CHECK(notes.take() == "ok");
}

/// That of Boost 1.74 runs what it dispatches inside; later ones do not.
TEST_CASE(
    "a handler whose executor never blocks is called inside the task only if Asio's dispatch() does that") {
  asio::io_context io;
  manual_timer time;
  const auto never = asio::require(io.get_executor(), asio::execution::blocking.never);
  bool inside = false, called = false, called_inside = false, dispatched_inside = false;
  async_wait_for(time, 1s, asio::bind_executor(never, [&](error_code) {
                   called = true;
                   called_inside = inside;
                 }));
  asio::post(io, [&] {
    inside = true;
    asio::dispatch(never, [&] { dispatched_inside = inside; });
    time.advance(1s);
    inside = false;
  });
  io.run();
  CHECK(called);
  CHECK(called_inside == dispatched_inside);
}

TEST_CASE("without memory a wait throws, reports the error or begins: nothing is left half done" *
          doctest::skip(!failing_new::available)) {
  for (std::size_t k = 0;; ++k) {
    CAPTURE(k);
    REQUIRE(k < 100);
    manual_timer time;
    asio::io_context io;
    std::vector<error_code> results;
    const auto token = std::make_shared<int>(0);
    bool threw = false, struck = false;
    {
      const failing_new failing(k, 1);
      try {
        async_wait_for(time, 1ms,
                       asio::bind_executor(io, [&results, token](error_code e) { results.push_back(e); }));
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      struck = failing.struck();
    }
    run_ready(io);
    if (threw) {
      CHECK(results.empty());
      CHECK(token.use_count() == 1);
    } else if (struck) {
      CHECK(results == std::vector<error_code>{asio::error::no_memory});
    }
    CHECK(time.pending() == (struck ? 0 : 1));
    time.advance(1ms);
    run_ready(io);
    CHECK(results.size() == (threw ? 0 : 1));
    CHECK(token.use_count() == 1);
    if (!struck) break;
  }
}

}  // namespace adapters_asio
