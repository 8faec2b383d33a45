// Contexts that are destroyed when their waits have ended: nothing of them is used afterwards, whatever still holds the wait.
#include "adapters/asio_results.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <rondo/timer.hpp>

#ifdef RONDO_ASIO_HAS_CANCELLATION
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

#include "adapters/counted_executor.hpp"
#include "threads/patience.hpp"

namespace adapters_asio_contexts {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;
using counted_strand = counted_executor<asio::strand<asio::io_context::executor_type>>;

struct context {
  executor_uses uses;
  std::optional<asio::io_context> io{std::in_place};
  journal notes;
  manual_timer time;
  std::vector<unfired> list;

  counted_strand executor() { return {asio::make_strand(*io), uses}; }
  void check_nothing_kept() const { CHECK(uses.copies == 0); }
};

TEST_CASE_FIXTURE(context, "a task that a list from stop() holds, when its wait has ended") {
  async_wait_for(time, 1h, ending_on(executor(), notes));
  list = time.stop();
  list.front().work();
  SUBCASE("the handler is called") {
    io->poll();
    CHECK(notes.take() == "ok");
  }
  SUBCASE("the handler is destroyed") { io.reset(); }
  check_nothing_kept();
  io.reset();
  list.front().work();
}

TEST_CASE_FIXTURE(context, "a task that is kept by its executor") {
  std::vector<job> jobs;
  manual_timer elsewhere(options{.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  async_wait_for(elsewhere, 1h, ending_on(executor(), notes));
  elsewhere.advance(1h);
  jobs.front()();
  io->poll();
  CHECK(notes.take() == "ok");
  check_nothing_kept();
}

#ifdef RONDO_ASIO_HAS_CANCELLATION
TEST_CASE("the slot, and a task in a list, when the wait has ended") {
  for (const char* const how : {"cancelled", "cancelled while a list has the task", "dropped", "elapsed"})
    for (const bool destroyed : {false, true}) {
      CAPTURE(how);
      CAPTURE(destroyed);
      context c;
      asio::cancellation_signal signal;
      async_wait_for(c.time, 1h,
                     asio::bind_cancellation_slot(signal.slot(), ending_on(c.executor(), c.notes)));
      const std::string_view what(how);
      if (what == "elapsed") c.time.advance(1h);
      if (what == "dropped") c.time.stop();
      if (what == "cancelled while a list has the task") c.list = c.time.stop();
      if (what.starts_with("cancelled")) signal.emit(asio::cancellation_type::total);
      if (!destroyed) c.io->poll();
      CHECK(c.notes.take() == (destroyed ? "" : what == "elapsed" ? "ok" : "aborted"));
      c.io.reset();
      c.check_nothing_kept();
      signal.emit(asio::cancellation_type::total);
    }
}
#endif

// --- While a thread submits the handler

TEST_CASE("a wait ends after the submission of its handler that is in progress") {
  for (const bool elapses : {false, true})
    for (const bool is_called : {false, true}) {
      CAPTURE(elapses);
      CAPTURE(is_called);
      context c;
      std::atomic<bool> inside{false};
      gate submitted;
      c.uses.submitted = [&] {
        inside = true;
        submitted.open();
        let_pass(20ms);  // in which the handler would be called or destroyed
        inside = false;
      };
      bool called = false;
      std::shared_ptr<void> held(&inside, [&](void*) { CHECK_FALSE(inside); });
      async_wait_for(c.time, 1h, asio::bind_executor(c.executor(), [&, held = std::move(held)](error_code) {
                       called = true;
                       CHECK_FALSE(inside);
                     }));
      std::thread driver([&] {
        if (elapses)
          c.time.advance(1h);
        else
          c.time.stop();
      });
      CHECK(submitted.wait());
      if (is_called) c.io->poll();
      c.io.reset();
      c.check_nothing_kept();
      CHECK(called == is_called);
      driver.join();
    }
}

TEST_CASE("an executor that lets its caller wait for what it runs on another thread") {
  asio::thread_pool pool(1);
  timer time;
  gate ended;
  async_wait_for(time, 1ms,
                 asio::bind_executor(asio::require(pool.get_executor(), asio::execution::blocking.always),
                                     [&](error_code) { ended.open(); }));
  CHECK(ended.wait());
  pool.join();
}

TEST_CASE("a context may be destroyed as soon as run() has returned, while the driver leaves it") {
  timer time(options{.tick = 5us});
  for (int round = 0; round != 500; ++round) {
    executor_uses uses;
    {
      asio::io_context io;
      const auto waiting = [&] {
        async_wait_for(time, round % 20 * 1us,
                       asio::bind_executor(counted_strand(asio::make_strand(io), uses), [](error_code) {}));
      };
      for (int i = 0; i != 4; ++i) waiting();
      std::thread other([&] { io.run(); });
      io.run();
      other.join();
      CHECK(uses.copies == 0);
    }
  }
}

}  // namespace adapters_asio_contexts
