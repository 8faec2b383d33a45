// The threads that run the handler, tested in isolation.
#include <doctest/doctest.h>

#include "durable/dispatcher/handler_threads.hpp"
#include "durable/dispatcher/inbox.hpp"
#include "durable/workplace.hpp"

namespace durable_dispatcher_threads {

using namespace durable_test;

class idle_session final : public detail::session {
 public:
  detail::turn_result take(const turn&) override { return {}; }
  bool wait() override { return false; }
  bool changed() override { return false; }
  duration look_every() const override { return duration::max(); }
  void interrupt() noexcept override {}
};

TEST_CASE("no run begins after the threads are closed, and runs that wait for a thread can be taken back") {
  idle_session nobody;
  detail::inbox in(nobody);
  gate begun, may_end;
  detail::handler_threads threads(1, in, [&](detail::run&) {
    begun.open();
    may_end.wait();
  });
  detail::run_list both;
  for (const std::int64_t id : {1, 2}) {
    both.emplace_back();
    both.back().what.id = id;
  }
  threads.add(both);
  REQUIRE(begun.wait());
  CHECK(threads.size() == 2);
  threads.close();
  may_end.add(2);
  threads.join();
  CHECK(begun.count() == 1);
  CHECK(threads.room() == 0);
  const detail::run_list left = threads.take_waiting(rondo::time_point::max());
  REQUIRE(left.size() == 1);
  CHECK(left.front().what.id == 2);
  CHECK(in.take().ended.size() == 1);
}

TEST_CASE("no run is taken away from an idle thread that has not yet come for it") {
  idle_session nobody;
  detail::inbox in(nobody);
  gate begun;
  detail::handler_threads threads(2, in, [&](detail::run&) { begun.open(); });
  for (int round = 1; round <= 200; ++round) {
    detail::run_list two(2);
    threads.add(two);
    REQUIRE(threads.take_waiting(rondo::time_point::max()).empty());
    REQUIRE(eventually([&] { return threads.size() == 0; }));
  }
  CHECK(begun.count() == 400);
}

}  // namespace durable_dispatcher_threads
