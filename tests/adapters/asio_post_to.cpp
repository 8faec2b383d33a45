// Asio executors as Rondo executors.
#include "adapters/asio_results.hpp"

#include <atomic>
#include <memory>
#include <optional>

#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <rondo/timer.hpp>

namespace adapters_asio_post_to {

using namespace rondo;
using namespace rondo::test;
namespace asio = boost::asio;

TEST_CASE("post_to: tasks run in an io_context when it is run") {
  asio::io_context io;
  manual_timer time(options{.run_on = post_to(io)});
  journal notes;
  time.schedule_after(1ms, notes.noting("a"));
  time.schedule_after(2ms, notes.noting("b"), rondo::on(post_to(io.get_executor())));
  time.advance(2ms);
  CHECK(notes.take() == "");
  run_ready(io);
  CHECK(notes.take() == "a b");
}

TEST_CASE("post_to keeps a copy of a strand, which runs its tasks one after another") {
  asio::thread_pool pool(4);
  std::atomic<int> inside{0}, together{0};
  int runs = 0;  // protected only by the strand
  {
    rondo::timer timer(options{.run_on = post_to(asio::make_strand(pool))});
    for (int i = 0; i != 2000; ++i)
      timer.schedule_after(i % 3 * 1ms, [&] {
        if (++inside != 1) ++together;
        ++runs;
        --inside;
      });
    CHECK(timer.drain(1min));
  }
  pool.join();
  CHECK(together == 0);
  CHECK(runs == 2000);
}

TEST_CASE("post_to: jobs that are destroyed with their context are counted as rejected") {
  std::optional<asio::io_context> io(std::in_place);
  manual_timer time(options{.run_on = post_to(*io)});
  time.schedule_after(1ms, [] { FAIL("it ran"); });
  time.advance(1ms);
  CHECK(time.stats().rejected == 0);
  io.reset();
  CHECK(time.stats().rejected == 1);
  CHECK(time.pending() == 0);
}

}  // namespace adapters_asio_post_to
