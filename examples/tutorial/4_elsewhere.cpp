// A task that runs on a thread pool and fails.
#include <utility>  // Boost.Asio 1.74 does not include it

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <iostream>
#include <stdexcept>

#include <rondo/timer.hpp>

void report(std::exception_ptr error, const rondo::firing& f) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    std::cout << "run " << f.run << " failed: " << e.what() << std::endl;
  }
}

int main() {
  using namespace std::chrono_literals;
  boost::asio::thread_pool pool(2);
  rondo::timer timer({
      .run_on = [&](rondo::job j) { boost::asio::post(pool, std::move(j)); },
      .on_error = report,
  });

  timer.schedule_after(10ms, [] { throw std::runtime_error("the disk is full"); });
  timer.drain(1min);
  std::cout << timer.stats().fired << " run, " << timer.stats().failed << " of them failed" << std::endl;
}
