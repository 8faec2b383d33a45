// Contexts that are destroyed when their operations have ended: nothing of them is used afterwards, whatever still holds
// the deadline. Boost 1.77 and later.
#include "adapters/asio_deadlines.hpp"

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <rondo/timer.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

#include "adapters/counted_executor.hpp"
#include "failing_new.hpp"
#include "threads/patience.hpp"

namespace adapters_asio_deadline_contexts {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;
using asio::cancellation_type;
using counted_strand = counted_executor<asio::strand<asio::io_context::executor_type>>;
using waiter =
    asio::basic_waitable_timer<scheduler::clock, asio::wait_traits<scheduler::clock>, counted_strand>;

/// What holds the deadline when its operation ends, apart from the token's slot.
enum class holder { a_timer, a_list, a_job, a_context, a_list_and_a_context };

/// One context, one operation with a deadline, and whatever may hold that.
struct holders {
  executor_uses uses;
  std::vector<job> jobs;
  manual_timer time{options{.run_on = [this](job j) { jobs.push_back(std::move(j)); }}};
  asio::cancellation_signal signal;
  std::vector<unfired> list;
  std::optional<asio::io_context> io{std::in_place};

  counted_strand executor() { return {asio::make_strand(*io), uses}; }
  template <class Handler>
  auto deadline(Handler handler) {
    return cancel_after(time, 1h, asio::bind_cancellation_slot(signal.slot(), std::move(handler)));
  }

  void give_to(holder h) {
    if (h == holder::a_list || h == holder::a_list_and_a_context) list = time.stop();
    if (h == holder::a_job || h == holder::a_context) time.advance(1h);
    if (h == holder::a_context) run_jobs();  // posts the cancellation
    if (h == holder::a_list_and_a_context) list.front().work();
  }
  void check_nothing_kept() const { CHECK(uses.copies == 0); }
  /// The address sanitizer would report what is still used.
  ~holders() {
    io.reset();
    signal.emit(cancellation_type::total);
    for (unfired& u : list) u.work();
    run_jobs();
  }

 private:
  void run_jobs() {
    for (job& j : std::exchange(jobs, {})) j();
  }
};

template <class F>
void with_each_holder(F test) {
  for (const holder h :
       {holder::a_timer, holder::a_list, holder::a_job, holder::a_context, holder::a_list_and_a_context})
    for (const bool destroyed : {false, true}) {
      CAPTURE(static_cast<int>(h));
      CAPTURE(destroyed);
      holders all;
      test(all, h, destroyed);
      all.check_nothing_kept();
    }
}

/// The wait ends, or is destroyed with its context. The object of an operation lives until its handler has been called.
template <class Waiter>
void end_waiting(holders& all, std::optional<Waiter>& wait, bool destroyed) {
  if (destroyed) {
    wait.reset();
    all.io.reset();
  } else {
    wait->cancel();
    all.io->run();
    wait.reset();
  }
}

TEST_CASE("the handler is called or destroyed") {
  with_each_holder([](holders& all, holder h, bool destroyed) {
    cancelled_here operation;
    operation.on_cancel = [](cancellation_type) {};
    operation.begin(all.deadline(asio::bind_executor(all.executor(), [](error_code) {})));
    all.give_to(h);
    CHECK(all.uses.copies > 0);
    if (!destroyed) operation.end(error_code());
    operation.end = nullptr;
    all.io->run();
  });
}

TEST_CASE("an operation of Asio's ends, or is destroyed with its context") {
  with_each_holder([](holders& all, holder h, bool destroyed) {
    std::optional<waiter> wait(std::in_place, all.executor(), 1h);
    int called = 0;
    wait->async_wait(all.deadline([&](error_code) { ++called; }));
    all.give_to(h);
    end_waiting(all, wait, destroyed);
    CHECK(called == (destroyed ? 0 : 1));
  });
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT
TEST_CASE("a coroutine ends, or is destroyed with its context") {
  with_each_holder([](holders& all, holder h, bool destroyed) {
    std::optional<asio::steady_timer> wait(std::in_place, *all.io, 1h);
    asio::co_spawn(
        all.executor(),
        [](asio::steady_timer& w) -> asio::awaitable<void> {
          co_await w.async_wait(asio::use_awaitable);
        }(*wait),
        all.deadline([](std::exception_ptr) {}));
    all.io->poll();
    all.give_to(h);
    end_waiting(all, wait, destroyed);
  });
}
#endif

TEST_CASE_FIXTURE(holders, "the initiation throws") {
  const auto begin = [&](auto&& token) {
    return asio::async_initiate<decltype(token), void(error_code)>(
        [](auto) { throw std::runtime_error("no socket"); }, token);
  };
  CHECK_THROWS_WITH(begin(deadline(asio::bind_executor(executor(), [](error_code) {}))), "no socket");
  check_nothing_kept();
}

TEST_CASE_FIXTURE(holders, "there is no memory for the operation") {
  if (!failing_new::available) return;
  bool failed = true;
  for (std::size_t after = 0; failed; ++after) {
    {
      waiter wait(executor(), 1h);
      const failing_new none(after, 1);
      try {
        wait.async_wait(deadline([](error_code) {}));
      } catch (const std::bad_alloc&) {
      }
      failed = none.struck();
    }
    io->restart();
    io->run();
    check_nothing_kept();
  }
}

/// An operation whose function in the slot keeps something.
template <class Kept, class Token>
auto begin_keeping(Kept kept, std::function<void()>& end, Token&& token) {
  return asio::async_initiate<Token, void(error_code)>(
      [kept, &end](auto handler) {
        asio::get_associated_cancellation_slot(handler).assign([kept, &end](cancellation_type) {
          end();
          CHECK(kept.use_count() > 1);  // the function has not been destroyed while it runs
        });
        end = [h = std::make_shared<decltype(handler)>(std::move(handler))] { std::move (*h)(error_code()); };
      },
      token);
}

TEST_CASE_FIXTURE(holders, "what the operation's function in the slot holds is released when it ends") {
  const auto kept = std::make_shared<int>(0);
  std::function<void()> end;
  begin_keeping(kept, end, deadline(asio::bind_executor(executor(), [](error_code) {})));
  CHECK(kept.use_count() > 1);
  SUBCASE("by itself") { end(); }
  SUBCASE("destroyed") {}
  SUBCASE("inside its cancellation, by the token's slot") { signal.emit(cancellation_type::terminal); }
  SUBCASE("inside its cancellation, by its deadline") {
    time.advance(1h);
    jobs.front()();
    io->run();
  }
  end = nullptr;
  CHECK(kept.use_count() == 1);
  check_nothing_kept();
}

// --- While a thread uses the executors

/// Lets `meanwhile` begin on a thread of its own when the scheduler's thread is inside an executor, and shows whether it ends
/// before the scheduler's thread has left that.
template <class F>
void while_submitting(holders& h, F meanwhile) {
  std::atomic<bool> inside{false};
  gate ended;
  std::thread other;
  h.uses.submitted = [&] {
    if (other.joinable()) return;
    inside = true;
    other = std::thread([&] {
      meanwhile(inside);
      ended.open();
    });
    let_pass(20ms);
    inside = false;
  };
  h.time.advance(1h);
  h.jobs.front()();
  CHECK(ended.wait());
  other.join();
}

TEST_CASE_FIXTURE(holders, "an operation ends after the posting of its cancellation that is in progress") {
  cancelled_here operation;
  operation.on_cancel = [](cancellation_type) {};
  operation.begin(deadline(asio::bind_executor(executor(), [](error_code) {})));
  bool is_called = false;
  SUBCASE("called") { is_called = true; }
  SUBCASE("destroyed") {}
  while_submitting(*this, [&](const std::atomic<bool>& inside) {
    if (is_called) operation.end(error_code());
    operation.end = nullptr;
    CHECK_FALSE(inside);
    check_nothing_kept();
  });
}

TEST_CASE("the driver does not wait for an operation that is being cancelled") {
  manual_timer time;
  asio::io_context io;
  asio::cancellation_signal signal;
  gate cancelling, passed;
  cancelled_here operation;
  operation.on_cancel = [&](cancellation_type) {
    cancelling.open();
    CHECK(passed.wait());
  };
  operation.begin(
      cancel_after(time, 1h,
                   asio::bind_cancellation_slot(signal.slot(),
                                                asio::bind_executor(io.get_executor(), [](error_code) {}))));
  std::thread other([&] { signal.emit(cancellation_type::terminal); });
  CHECK(cancelling.wait());
  time.advance(1h);
  passed.open();
  other.join();
  operation.end = nullptr;
}

TEST_CASE("a context may be destroyed as soon as run() has returned, while its deadlines come") {
  timer time(options{.tick = 5us});
  for (int round = 0; round != 500; ++round) {
    executor_uses uses;
    asio::io_context io;
    {
      std::vector<std::unique_ptr<waiter>> waits;
      for (int i = 0; i != 4; ++i) {
        auto& wait =
            waits.emplace_back(std::make_unique<waiter>(counted_strand(asio::make_strand(io), uses), 100us));
        wait->async_wait(cancel_after(time, 60us + round % 20 * 4us, [](error_code) {}));
      }
      std::thread other([&] { io.run(); });
      io.run();
      other.join();
    }
    CHECK(uses.copies == 0);
  }
}

TEST_CASE("an executor that lets its caller wait for what it runs on another thread") {
  asio::thread_pool pool(1);
  const auto blocking = asio::require(pool.get_executor(), asio::execution::blocking.always);
  asio::steady_timer wait(pool, 1h);
  timer time;
  gate ended;
  wait.async_wait(cancel_after(time, 1ms, asio::bind_executor(blocking, [&](error_code) { ended.open(); })));
  CHECK(ended.wait());
  pool.join();
}

}  // namespace adapters_asio_deadline_contexts
