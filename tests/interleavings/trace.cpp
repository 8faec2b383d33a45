// A trace that is read while threads write into it.
#include "interleavings/explorations.hpp"
#include "interleavings/stage.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string_view>

#include <rondo/trace.hpp>

#include "trace/ring.hpp"

namespace interleavings_trace {

using namespace rondo;
using namespace rondo::test;
using detail::trace_ring;

/// Says the same number everywhere.
trace_ring::content saying(std::uint64_t n) { return {n, n, n, n, n, n}; }

/// What is in the ring: events are whole, they are those of their writers, and none is there twice.
void expect_whole(const trace_ring& ring) {
  std::array<int, 10> seen{};
  ring.for_each([&](const trace_ring::event& e, std::string_view name) {
    const std::uint64_t n = e.says[0];
    expect(e.says == saying(n), "an event is whole");
    expect(n < seen.size() && ++seen[n] == 1, "an event is there once");
    expect(e.what.thread == n, "its label belongs to it");
    expect(e.length < duration::zero() || e.length == duration(static_cast<duration::rep>(n)),
           "its duration belongs to it");
    expect(name.empty() || name == std::string(1, static_cast<char>('a' + n)), "its name belongs to it");
  });
}

struct ring_in_use {
  trace_ring ring{2};

  void write(std::uint64_t n, bool named = false) {
    const char name = static_cast<char>('a' + n);
    const auto here = ring.begin({.thread = static_cast<std::uint32_t>(n)}, saying(n),
                                 named ? std::string_view(&name, 1) : std::string_view());
    trace_ring::end(here, duration(static_cast<duration::rep>(n)));
  }
};

/// Each thread writes its numbers, and one reads.
std::function<scenario()> writing(std::vector<std::vector<std::uint64_t>> threads, bool reads,
                                  bool named = false) {
  return [=] {
    const auto s = std::make_shared<ring_in_use>();
    s->write(0);
    s->write(1);
    scenario what;
    for (const auto& numbers : threads)
      what.threads.push_back({"writes", [=] {
                                for (const std::uint64_t n : numbers) s->write(n, named);
                              }});
    if (reads) what.threads.push_back({"reads", [s] { expect_whole(s->ring); }});
    what.check = [s] { expect_whole(s->ring); };
    return what;
  };
}

TEST_CASE("an event that is read while another one replaces it is whole, or left out") {
  check_small(writing({{2}}, true));
  check_every_schedule(writing({{2, 3}}, true), few);
  check_every_schedule(writing({{2, 3, 4}}, true), few);
}

TEST_CASE("a name that is read while another one replaces it belongs to its event, or is left out") {
  check_every_schedule(writing({{2, 3}}, true, true), few);
}

TEST_CASE("two threads that write to one slot do not mix their events, and neither ends that of the other") {
  check_small(writing({{2}, {3, 4}}, false));
  check_every_schedule(writing({{2}, {3, 4}}, true), few);
  check_every_schedule(writing({{2, 3}, {4, 5}}, false, true), few);
}

TEST_CASE("an event is replaced by newer ones only") {
  check_small([] {
    const auto s = std::make_shared<ring_in_use>();
    s->write(0);
    s->write(1);
    const auto has_last = [s] {
      bool found = false;
      s->ring.for_each(
          [&](const trace_ring::event& e, std::string_view) { found = found || e.says[0] == 4; });
      return found;
    };
    const auto seen = std::make_shared<bool>(false);
    scenario what;
    what.threads = {{"writes", [s] { s->write(2); }}, {"writes and looks", [=] {
                                                         s->write(3);
                                                         s->write(4);
                                                         *seen = has_last();
                                                       }}};
    what.check = [=] { expect(!*seen || has_last(), "none of the last two events is replaced"); };
    return what;
  });
}

TEST_CASE("a trace is read and written out while a driver and an executor's thread record") {
  const auto into = std::make_shared<std::shared_ptr<trace>>();
  const auto prepare = [=](stage& s) {
    s.add_job(1ms);
    s.add(1ms);
    virtual_time::move_to(at(1ms));
    s.core().pass();
    s.add(2ms);
    virtual_time::move_to(at(3ms));
  };
  const part pass{"driver", [](stage& s) { s.core().pass(); }};
  const part job{"job", [](stage& s) { s.submitted(0)(); }};
  const part reads{"reads", [=](stage&) {
                     for (const auto& run : (*into)->late(0ns))
                       expect(
                           run.woken_late + run.behind_tasks + run.in_executor + run.in_pass == run.lateness,
                           "the parts add up");
                     std::ostringstream out;
                     (*into)->write(out);
                     (*into)->lost();
                   }};
  const auto traced = [=](std::vector<part> parts) {
    return [=] {
      *into = std::make_shared<trace>(4);
      return on_stage(prepare, parts, {.buckets = 2, .traced_by = *into})();
    };
  };
  check_every_schedule(traced({pass, reads}), few);
  check_every_schedule(traced({job, reads}), few);
}

}  // namespace interleavings_trace
