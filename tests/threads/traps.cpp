// Mistakes that checked builds report.
#include <rondo/detail/checks.hpp>

#if defined(RONDO_CHECKS)
#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>
#include <thread>

#include "threads/patience.hpp"
#include "threads/pool.hpp"

namespace threads_traps {

using namespace rondo;
using namespace rondo::test;

/// Captures what any thread writes to std::cerr during its lifetime.
class watched_cerr : public std::streambuf {
 public:
  watched_cerr() : old_(std::cerr.rdbuf(this)) {}
  ~watched_cerr() override { std::cerr.rdbuf(old_); }
  watched_cerr(const watched_cerr&) = delete;
  watched_cerr& operator=(const watched_cerr&) = delete;

  std::string text() {
    const std::lock_guard hold(mutex_);
    return text_;
  }
  bool wait_for(const std::string& part) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (text().find(part) == std::string::npos && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return text().find(part) != std::string::npos;
  }

 private:
  int overflow(int c) override {
    const std::lock_guard hold(mutex_);
    text_ += static_cast<char>(c);
    return c;
  }
  std::streamsize xsputn(const char* begin, std::streamsize size) override {
    const std::lock_guard hold(mutex_);
    text_.append(begin, static_cast<std::size_t>(size));
    return size;
  }

  std::mutex mutex_;
  std::string text_;
  std::streambuf* const old_;
};

TEST_CASE("a wait while holding a mutex that the task takes is reported, and ends when the mutex is free") {
  watched_cerr cerr;
  std::mutex taken_by_task;
  std::unique_lock held(taken_by_task);
  gate begun;
  timer t;
  const auto id = t.schedule_after(0s, [&] {
    begun.open();
    const std::lock_guard hold(taken_by_task);
  });
  REQUIRE(begun.wait());
  std::string expected;
  std::thread waiter;
  SUBCASE("of cancel_and_wait()") {
    waiter = std::thread([&] { t.cancel_and_wait(id); });
    expected = "rondo: cancel_and_wait() has waited 5 s for tasks in progress";
  }
  SUBCASE("of stop()") {
    waiter = std::thread([&] { t.stop(); });
    expected = "rondo: stop() has waited 5 s for tasks in progress";
  }
  CHECK(cerr.wait_for(expected));
  held.unlock();
  waiter.join();
}

TEST_CASE("an executor that blocks is reported with the timer's name; one that runs the task is not") {
  watched_cerr cerr;
  gate done;
  timer t;
  const auto slow = [&] { let_pass(1100ms); };
  const auto finish = [&] { done.open(); };
  t.schedule_after(0s, slow, {.run_on = [](job j) { j(); }, .name = "slow"});
  t.schedule_after(0s, finish,
                   {.run_on =
                        [&](job j) {
                          let_pass(1100ms);
                          j = job();
                          done.open();
                        },
                    .name = "blocked"});
  REQUIRE(done.wait());
  CHECK(cerr.wait_for("rondo: the executor blocked for 1."));
  CHECK(cerr.text().find("\"blocked\", and all other timers waited") != std::string::npos);
  CHECK(cerr.text().find("\"slow\"") == std::string::npos);
}

}  // namespace threads_traps
#endif
