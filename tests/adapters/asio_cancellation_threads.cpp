// Cancelling a wait while it fires on another thread. Boost 1.77 and later.
#include <rondo/asio.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace adapters_asio_cancellation_threads {

using namespace rondo;
using namespace rondo::test;
using boost::system::error_code;
namespace asio = boost::asio;

/// One wait with its own strand, on which it begins, is cancelled and ends.
struct cancelled_wait {
  asio::strand<asio::thread_pool::executor_type> strand;
  asio::cancellation_signal signal;
  int ends = 0;
  bool cancelled = false;

  explicit cancelled_wait(asio::thread_pool& pool) : strand(asio::make_strand(pool)) {}

  template <class OnEnd>
  void begin(timer& time, rondo::duration d, OnEnd on_end) {
    async_wait_for(
        time, d,
        asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(strand, [this, on_end](error_code e) {
                                       ++ends;
                                       on_end(e, cancelled);
                                     })));
  }
  void cancel() {
    if (ends == 0) cancelled = true;
    signal.emit(asio::cancellation_type::total);
  }
};

TEST_CASE("a wait that is cancelled as it fires ends once: aborted, if it was cancelled before it ended") {
  constexpr int waits = 3000;
  asio::thread_pool pool(2);
  std::vector<std::unique_ptr<cancelled_wait>> all;
  std::atomic<int> ok{0}, aborted{0}, wrong{0};
  timer time(options{.tick = 10us});
  for (int i = 0; i != waits; ++i) {
    auto& w = *all.emplace_back(std::make_unique<cancelled_wait>(pool));
    asio::post(w.strand, [&, i] {
      w.begin(time, i % 20 * 10us, [&](error_code e, bool cancelled) {
        ++(e ? aborted : ok);
        if (bool(e) != cancelled) ++wrong;
      });
      spin(static_cast<unsigned>(i) % 1000);
      asio::post(w.strand, [&w] { w.cancel(); });
    });
  }
  pool.join();
  CHECK(ok + aborted == waits);
  CHECK(wrong == 0);
  for (const auto& w : all) CHECK(w->ends == 1);
  CHECK(time.drain(patience));  // the last task may not have ended yet
  CHECK(time.pending() == 0);
  CHECK(adds_up(time.stats()));
}

TEST_CASE("waits may be cancelled while their scheduler is being destroyed, and afterwards") {
  for (int round = 0; round != 50; ++round) {
    asio::thread_pool pool(2);
    std::optional<timer> time(std::in_place, options{.tick = 10us});
    std::vector<std::unique_ptr<cancelled_wait>> all;
    std::atomic<int> ends{0};
    for (int i = 0; i != 100; ++i) {
      auto& w = *all.emplace_back(std::make_unique<cancelled_wait>(pool));
      w.begin(*time, i % 3 * 1h, [&](error_code, bool) { ++ends; });
    }
    for (auto& w : all) asio::post(w->strand, [&w] { w->cancel(); });
    spin(static_cast<unsigned>(round) * 200);
    time.reset();
    pool.join();
    CHECK(ends == 100);
  }
}

}  // namespace adapters_asio_cancellation_threads
