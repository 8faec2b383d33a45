// Waits on real threads.
#include <rondo/asio.hpp>

#include <atomic>
#include <thread>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <rondo/timer.hpp>

#include "threads/patience.hpp"

namespace adapters_asio_threads {

using namespace rondo;
using namespace rondo::test;
using boost::system::error_code;
namespace asio = boost::asio;

TEST_CASE("run() returns when all waits have ended, each exactly once and none early") {
  constexpr int waits = 2000;
  asio::io_context io;
  timer time(options{.tick = 10us});
  int ended = 0, early = 0;
  for (int i = 0; i != waits; ++i) {
    const auto deadline = scheduler::clock::now() + i * 7919 % 5000 * 1us;
    async_wait_until(time, deadline, asio::bind_executor(io, [&, deadline](error_code e) {
                       ++ended;
                       if (e || scheduler::clock::now() < deadline) ++early;
                     }));
  }
  io.run();
  CHECK(ended == waits);
  CHECK(early == 0);
}

/// Waits again and again, on whichever thread of the pool calls its handler.
struct chain {
  timer& time;
  asio::thread_pool& pool;
  std::atomic<int>& aborted;
  int left;
  void operator()(error_code e) {
    if (e)
      ++aborted;
    else if (--left != 0)
      begin();
  }
  void begin() { async_wait_for(time, left % 3 * 100us, asio::bind_executor(pool, chain(*this))); }
};

TEST_CASE("handlers may begin further waits on a pool") {
  asio::thread_pool pool(3);
  timer time(options{.tick = 10us});
  std::atomic<int> aborted{0};
  for (int i = 0; i != 20; ++i) chain{time, pool, aborted, 100}.begin();
  pool.join();
  CHECK(aborted == 0);
  CHECK(time.drain(patience));  // the last task may not have ended yet
  CHECK(time.stats().completed == 2000);
}

TEST_CASE("stop() ends each wait once: on time, or aborted when the list is destroyed") {
  for (int round = 0; round != 20; ++round) {
    asio::thread_pool pool(2);
    std::atomic<int> ok{0}, aborted{0};
    {
      timer time(options{.tick = 10us});
      std::atomic<int> begun{0};
      std::thread beginning([&] {
        for (int i = 0; i != 500; ++i) {
          async_wait_for(time, i % 50 * 10us,
                         asio::bind_executor(pool, [&](error_code e) { ++(e ? aborted : ok); }));
          ++begun;
        }
      });
      while (begun < 100 + round * 10) std::this_thread::yield();
      time.stop();
      beginning.join();
    }
    pool.join();
    CHECK(ok + aborted == 500);
  }
}

}  // namespace adapters_asio_threads
