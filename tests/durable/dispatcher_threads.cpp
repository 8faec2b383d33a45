// Begun runs and the threads that run the handler, tested in isolation.
#include <doctest/doctest.h>

#include "durable/dispatcher/begun_runs.hpp"
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
  detail::begun_runs runs(1, in);
  detail::handler_threads threads(1, runs, [&](detail::run&) {
    begun.open();
    may_end.wait();
  });
  detail::run_list both;
  for (const std::int64_t id : {1, 2}) {
    both.emplace_back();
    both.back().what.id = id;
  }
  runs.add(both);
  REQUIRE(begun.wait());
  CHECK(runs.size() == 2);
  runs.close();
  may_end.add(2);
  threads.join();
  CHECK(begun.count() == 1);
  CHECK(runs.room() == 0);
  const detail::run_list left = runs.take_waiting(rondo::time_point::max());
  REQUIRE(left.size() == 1);
  CHECK(left.front().what.id == 2);
  CHECK(in.take().ended.size() == 1);
}

TEST_CASE("no run is taken away from an idle thread that has not yet come for it") {
  idle_session nobody;
  detail::inbox in(nobody);
  gate begun;
  detail::begun_runs runs(2, in);
  detail::handler_threads threads(2, runs, [&](detail::run&) { begun.open(); });
  for (int round = 1; round <= 200; ++round) {
    detail::run_list two(2);
    runs.add(two);
    REQUIRE(runs.take_waiting(rondo::time_point::max()).empty());
    REQUIRE(eventually([&] { return runs.size() == 0; }));
  }
  CHECK(begun.count() == 400);
}

}  // namespace durable_dispatcher_threads
