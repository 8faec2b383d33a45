// Deadlines that meet the end of their operations on a pool of four threads. Boost 1.77 and later.
#include <rondo/asio.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <rondo/timer.hpp>

#ifdef BOOST_ASIO_HAS_CO_AWAIT
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

#include "threads/patience.hpp"

namespace adapters_asio_deadline_threads {

using namespace rondo;
using namespace rondo::test;
using boost::system::error_code;
namespace asio = boost::asio;
using local = asio::local::stream_protocol;

constexpr std::size_t threads = 4;

/// How operations have ended.
struct ends {
  std::atomic<int> ok{0}, aborted{0}, wrong{0};

  void add(error_code e) {
    if (!e)
      ++ok;
    else if (e == asio::error::operation_aborted)
      ++aborted;
    else
      ++wrong;
  }
  int all() const { return ok + aborted + wrong; }
};

void check_nothing_left(timer& time) {
  CHECK(time.pending() == 0);
  CHECK(time.drain(patience));  // the last task may not have ended yet
  CHECK(adds_up(time.stats()));
}

TEST_CASE("without strands: operations of one step end once, however close their deadlines") {
  constexpr int count = 3000;
  ends ended;
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  std::vector<std::unique_ptr<asio::steady_timer>> waits;
  for (int i = 0; i != count; ++i) {
    auto& wait = *waits.emplace_back(std::make_unique<asio::steady_timer>(pool, i % 20 * 10us));
    wait.async_wait(cancel_after(time, i % 23 * 10us, [&](error_code e) { ended.add(e); }));
  }
  pool.join();
  CHECK(ended.all() == count);
  CHECK(ended.wrong == 0);
  check_nothing_left(time);
}

TEST_CASE("without strands: deadlines inside deadlines, however close to the end of their operation") {
  constexpr int count = 3000;
  ends ended;
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  std::vector<std::unique_ptr<asio::steady_timer>> waits;
  for (int i = 0; i != count; ++i) {
    auto& wait = *waits.emplace_back(std::make_unique<asio::steady_timer>(pool, i % 20 * 10us));
    const auto outer = i % 3 == 0 ? 1h : i % 21 * 10us;
    wait.async_wait(
        cancel_after(time, outer, cancel_after(time, i % 23 * 10us, [&](error_code e) { ended.add(e); })));
  }
  pool.join();
  CHECK(ended.all() == count);
  CHECK(ended.wrong == 0);
  check_nothing_left(time);
}

TEST_CASE("without strands: the object of an operation may be destroyed by its handler") {
  constexpr int count = 2000;
  ends ended;
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  for (int i = 0; i != count; ++i) {
    auto wait = std::make_unique<asio::steady_timer>(pool, i % 20 * 10us);
    auto& begun = *wait;
    begun.async_wait(
        cancel_after(time, i % 23 * 10us, [&ended, kept = std::move(wait)](error_code e) mutable {
          kept.reset();
          ended.add(e);
        }));
  }
  pool.join();
  CHECK(ended.all() == count);
  CHECK(ended.wrong == 0);
  check_nothing_left(time);
}

/// One reader with its own strand, and a writer that sends what it wants in two parts.
struct conversation : std::enable_shared_from_this<conversation> {
  using strand = asio::strand<asio::thread_pool::executor_type>;

  strand where;
  asio::basic_stream_socket<local, strand> ours{where}, theirs;
  std::array<char, 4> input{};
  asio::cancellation_signal signal;
  int ended = 0;

  explicit conversation(asio::thread_pool& pool)
      : where(asio::make_strand(pool)), theirs(asio::make_strand(pool)) {
    asio::local::connect_pair(ours, theirs);
  }

  /// A composed operation, whose steps run on the strand.
  void read(timer& time, rondo::duration limit, ends& all) {
    asio::dispatch(where, [this, kept = shared_from_this(), &time, limit, &all] {
      asio::async_read(
          ours, asio::buffer(input),
          cancel_after(
              time, limit,
              asio::bind_cancellation_slot(
                  signal.slot(), asio::bind_executor(where, [this, kept, &all](error_code e, std::size_t n) {
                    ++ended;
                    if (bool(e) == (n == input.size())) ++all.wrong;
                    all.add(e);
                  }))));
    });
  }
  void write() {
    asio::post(theirs.get_executor(),
               [kept = shared_from_this()] { kept->theirs.send(asio::buffer("ab", 2)); });
  }
};

TEST_CASE("on strands: composed operations end once, by their data, their deadline or the token's slot") {
  constexpr int count = 1000;
  ends ended;
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  std::vector<std::shared_ptr<conversation>> all;
  for (int i = 0; i != count; ++i) {
    auto& c = *all.emplace_back(std::make_shared<conversation>(pool));
    c.read(time, i % 20 * 10us, ended);
    c.write();
    spin(static_cast<unsigned>(i) % 1000);
    c.write();
    if (i % 3 == 0) asio::post(c.where, [&c] { c.signal.emit(asio::cancellation_type::terminal); });
  }
  pool.join();
  CHECK(ended.all() == count);
  CHECK(ended.wrong == 0);
  for (const auto& c : all) CHECK(c->ended == 1);
  check_nothing_left(time);
}

TEST_CASE("use_future: threads wait for operations that are cancelled by their deadlines") {
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  for (int i = 0; i != 300; ++i) {
    asio::steady_timer wait(pool, i % 2 == 0 ? 1h : i % 20 * 10us);
    std::future<void> done = wait.async_wait(cancel_after(time, i % 20 * 10us, asio::use_future));
    try {
      done.get();
      CHECK(i % 2 == 1);
    } catch (const boost::system::system_error& e) {
      CHECK(e.code() == asio::error::operation_aborted);
    }
  }
  pool.join();
  check_nothing_left(time);
}

#ifdef BOOST_ASIO_HAS_CO_AWAIT

TEST_CASE("coroutines on strands: one operation after another, each with its deadline") {
  constexpr int coroutines = 40;
  constexpr int rounds = 50;
  ends ended;
  timer time(options{.tick = 10us});
  asio::thread_pool pool(threads);
  const auto work = [&](int seed) -> asio::awaitable<void> {
    asio::steady_timer wait(co_await asio::this_coro::executor);
    for (int i = 0; i != rounds; ++i) {
      wait.expires_after((seed + i) % 7 * 10us);
      const auto [e] = co_await wait.async_wait(
          cancel_after(time, (seed * 3 + i) % 8 * 10us, asio::as_tuple(asio::use_awaitable)));
      ended.add(e);
    }
  };
  for (int i = 0; i != coroutines; ++i) asio::co_spawn(asio::make_strand(pool), work(i), asio::detached);
  pool.join();
  CHECK(ended.all() == coroutines * rounds);
  CHECK(ended.wrong == 0);
  check_nothing_left(time);
}

#endif

TEST_CASE("the scheduler may be destroyed while its operations end and are cancelled") {
  constexpr int count = 100;
  for (int round = 0; round != 30; ++round) {
    ends ended;
    asio::thread_pool pool(threads);
    std::optional<timer> time(std::in_place, options{.tick = 10us});
    std::vector<std::unique_ptr<asio::steady_timer>> waits;
    for (int i = 0; i != count; ++i) {
      auto& wait = *waits.emplace_back(std::make_unique<asio::steady_timer>(pool, i % 2 * 100us));
      if (i % 4 == 0) wait.expires_after(1h);
      wait.async_wait(cancel_after(*time, i % 3 * 1h, [&](error_code e) { ended.add(e); }));
    }
    spin(static_cast<unsigned>(round) * 500);
    time.reset();
    pool.join();
    CHECK(ended.all() == count);
    CHECK(ended.wrong == 0);
  }
}

TEST_CASE("without strands: waits of a scheduler end once, however close their deadlines") {
  timer time(options{.tick = 5us});
  int ended = 0;
  for (int round = 0; round != 1000; ++round) {
    std::vector<std::future<void>> waits;
    for (int i = 0; i != 8; ++i)
      waits.push_back(
          async_wait_for(time, 100us, cancel_after(time, 80us + round % 20 * 2us, asio::use_future)));
    for (auto& wait : waits) {
      try {
        wait.get();
        ++ended;
      } catch (const boost::system::system_error& e) {
        ended += e.code() == asio::error::operation_aborted;
      }
    }
  }
  CHECK(ended == 1000 * 8);
  check_nothing_left(time);
}

TEST_CASE("a context that is destroyed with operations pending leaves nothing behind") {
  const auto token = std::make_shared<int>(0);
  timer time(options{.tick = 10us});
  for (int round = 0; round != 30; ++round) {
    asio::thread_pool pool(threads);
    std::vector<std::unique_ptr<asio::steady_timer>> waits;
    for (int i = 0; i != 100; ++i) {
      auto& wait = *waits.emplace_back(std::make_unique<asio::steady_timer>(pool, i % 2 == 0 ? 1h : 10us));
      wait.async_wait(cancel_after(time, 1h, [token](error_code) {}));
    }
    pool.stop();
    pool.join();
    waits.clear();
  }
  CHECK(token.use_count() == 1);
  check_nothing_left(time);
}

}  // namespace adapters_asio_deadline_threads
