// The ring of a trace, and what is in it.
#include "scheduler/virtual_time.hpp"

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rondo/polled_timer.hpp>
#include <rondo/trace.hpp>

#include "failing_new.hpp"
#include "scheduler/json.hpp"
#include "trace/ring.hpp"

namespace scheduler_trace {

using namespace rondo;
using namespace rondo::test;
using detail::trace_ring;

TEST_CASE("a trace without room is refused") {
  CHECK_THROWS_WITH_AS(trace(0), doctest::Contains("not for 0"), std::invalid_argument);
  CHECK_THROWS_AS(trace{std::numeric_limits<std::size_t>::max()}, std::bad_alloc);
}

std::vector<std::uint64_t> contents(const trace_ring& ring) {
  std::vector<std::uint64_t> found;
  ring.for_each([&](const trace_ring::event& e, std::string_view) { found.push_back(e.says[0]); });
  return found;
}

TEST_CASE("newer events replace the oldest ones") {
  trace_ring ring(4);
  for (std::uint64_t i = 0; i != 4; ++i) ring.begin({}, {i}, {});
  CHECK(ring.lost() == 0);
  CHECK(contents(ring) == std::vector<std::uint64_t>{0, 1, 2, 3});
  for (std::uint64_t i = 4; i != 10; ++i) ring.begin({}, {i}, {});
  CHECK(ring.lost() == 6);
  CHECK(contents(ring) == std::vector<std::uint64_t>{6, 7, 8, 9});
}

TEST_CASE("an event knows what it is, its name, and how long it took") {
  trace_ring ring(4);
  const auto here =
      ring.begin({.kind = 7, .is_virtual = true, .thread = 0xabcdef}, {1, 2, 3, 4, 5, 6}, "its name");
  ring.begin({.kind = 8}, {}, {});
  int seen = 0;
  const auto check = [&](duration length) {
    seen = 0;
    ring.for_each([&](const trace_ring::event& e, std::string_view name) {
      if (++seen == 2) {
        CHECK(name.empty());
        return;
      }
      CHECK(e.what.kind == 7);
      CHECK(e.what.is_virtual);
      CHECK(e.what.thread == 0xabcdef);
      CHECK(e.says == trace_ring::content{1, 2, 3, 4, 5, 6});
      CHECK(name == "its name");
      if (length < 0ns)
        CHECK(e.length < 0ns);
      else
        CHECK(e.length == length);
    });
    CHECK(seen == 2);
  };
  check(-1ns);
  trace_ring::end(here, 5ns);
  check(5ns);
  trace_ring::end(here, 6ns);
  check(5ns);
}

TEST_CASE("an event that has been replaced does not end a newer one") {
  trace_ring ring(2);
  const auto old = ring.begin({}, {1}, {});
  ring.begin({}, {2}, {});
  ring.begin({}, {3}, {});
  trace_ring::end(old, 5ns);
  ring.for_each([](const trace_ring::event& e, std::string_view) { CHECK(e.length < 0ns); });
}

TEST_CASE("a name is not taken for that of another event") {
  trace_ring ring(2);
  ring.begin({}, {1}, "first");
  ring.begin({}, {2}, {});  // replaces the event, and not its name
  int seen = 0;
  ring.for_each([&](const trace_ring::event& e, std::string_view name) {
    ++seen;
    CHECK(e.says[0] == 2);
    CHECK(name.empty());
  });
  CHECK(seen == 1);
}

TEST_CASE("lost() counts what a scheduler has recorded too much") {
  const auto into = std::make_shared<trace>(16);
  manual_timer time({.traced_by = into});
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(into->lost() == 0);
  for (int i = 0; i != 100; ++i) time.schedule_after(1ms, doing_nothing());
  time.elapse(2ms);
  time.advance(0ms);
  CHECK(into->lost() == 103 - 16);  // one for each run, and one for each pass
  CHECK(into->late(0ns).size() == 16);
}

TEST_CASE("of what happened before the oldest event, nothing is said") {
  const auto into = std::make_shared<trace>(4);
  manual_timer time({.traced_by = into});
  for (int i = 0; i != 100; ++i) time.schedule_after(1ms, [&] { time.elapse(1ms); });
  time.elapse(10ms);
  time.advance(0ms);
  const auto all = into->late(0ns);
  REQUIRE(all.size() == 4);
  CHECK(all[0].in_pass == all[0].lateness);
  CHECK(all[3].behind_tasks == 3ms);
  CHECK(all[3].in_pass == all[3].lateness - 3ms);
}

TEST_CASE("polls that find nothing due are not recorded") {
  const auto into = std::make_shared<trace>(16);
  polled_timer time({.traced_by = into});
  time.schedule_after(1h, doing_nothing());
  for (int i = 0; i != 100; ++i) CHECK(time.poll() == 0);
  CHECK(into->lost() == 0);
}

TEST_CASE("a name is cut between two characters") {
  const auto into = std::make_shared<trace>();
  manual_timer time({.traced_by = into});
  const std::string a(47, 'a');
  for (const std::string& name : {a, a + "b", a + "bc", a + "ä", a + "äb", a.substr(2) + "€",
                                  a.substr(1) + "€", a.substr(1) + "अ", a + "\xc0"})
    time.schedule_after(1ms, doing_nothing(), {.name = name});
  time.elapse(2ms);
  time.advance(0ms);
  std::string names;
  for (const auto& run : into->late(0ns)) names += run.name + '\n';
  std::string expected;
  for (const std::string& name : {a, a + "b", a + "b", a, a, a.substr(2) + "€", a.substr(1), a.substr(1), a})
    expected += name + '\n';
  CHECK(names == expected);
}

/// A scheduler to which everything happens that is recorded.
std::string eventful(const std::string& name) {
  const auto into = std::make_shared<trace>();
  std::ostringstream out;
  manual_timer time({.name = "the scheduler", .traced_by = into});
  std::vector<job> jobs;
  const executor queue = [&](job j) { jobs.push_back(std::move(j)); };
  time.schedule_after(1ms, [&] { time.elapse(4ms); }, {.name = name});
  time.schedule_after(2ms, doing_nothing());
  time.schedule_after(2ms, doing_nothing());
  time.schedule_after(1ms, doing_nothing(), {.run_on = queue, .name = "handed over"});
  time.schedule_after(1ms, doing_nothing(), {.run_on = [](const job&) {}, .name = "not taken"});
  time.schedule_every(2ms, doing_nothing(), {.name = "every"});
  time.schedule_every(2ms, doing_nothing(), {.run_on = queue, .name = "overlaps"});
  time.elapse(11ms);
  time.advance(0ms);
  time.advance(10ms);
  jobs[0]();
  time.schedule_after(1ms, [&] { into->write(out); }, {.name = "writes"});
  time.advance(1ms);
  return out.str();
}

TEST_CASE("write() is JSON with everything in it") {
  const json all = parse_json(eventful("a name"));
  const std::vector<json>& events = all.at("traceEvents").items();
  const auto count = [&](const std::string& phase, const std::string& name) {
    std::size_t found = 0;
    for (const json& e : events)
      if (e.at("ph").text() == phase && e.at("name").text() == name) ++found;
    return found;
  };
  CHECK(count("X", "a name and 1 more") == 1);  // a deadline
  CHECK(count("X", "a name") == 1);
  CHECK(count("X", "hand over handed over") == 1);
  CHECK(count("X", "handed over") == 1);
  CHECK(count("i", "rejected: not taken") == 1);
  CHECK(count("i", "missed: every") >= 1);
  for (const json& e : events)
    if (e.at("ph").text() == "i" && e.at("name").text() == "missed: every")
      CHECK(e.at("args").at("points").number() >= 1);
  CHECK(count("i", "dropped: overlaps") >= 1);
  CHECK(count("X", "pass") >= 2);
  CHECK(count("B", "pass") == 1);    // in progress
  CHECK(count("B", "writes") == 1);  // as well
  CHECK(count("M", "process_name") == 1);
  CHECK(count("M", "thread_name") == 2);
  CHECK(count("s", "wait") == count("f", "wait"));
  CHECK(count("t", "wait") == 1);
  CHECK(count("C", "lateness") == count("f", "wait"));
}

TEST_CASE("arrows begin in a deadline and end in its run") {
  const json all = parse_json(eventful("x"));
  const std::vector<json>& events = all.at("traceEvents").items();
  const auto is_in_slice = [&](const json& arrow) {
    for (const json& e : events) {
      const std::string phase = e.at("ph").text();
      if ((phase == "X" || phase == "B") && e.at("tid").number() == arrow.at("tid").number() &&
          e.at("ts").number() == arrow.at("ts").number())
        return true;
    }
    return false;
  };
  std::size_t arrows = 0;
  for (const json& e : events) {
    const std::string phase = e.at("ph").text();
    if (phase != "s" && phase != "t" && phase != "f") continue;
    ++arrows;
    CHECK(is_in_slice(e));
  }
  CHECK(arrows > 10);
}

TEST_CASE("slices of a track nest or do not touch, also in floating-point numbers") {
  const auto into = std::make_shared<trace>();
  manual_timer time({.traced_by = into});
  time.advance(17h + 123'456'789ns);
  for (int i = 0; i != 100; ++i) time.schedule_after(i * 500ns, [&] { time.elapse(333'333ns); });
  time.schedule_after(2ms, doing_nothing(), {.run_on = [&](job j) {
                        time.elapse(1'111ns);
                        j();
                        time.elapse(1'111ns);
                      }});
  for (int i = 0; i != 10; ++i) time.advance(1ms);
  std::ostringstream out;
  into->write(out);
  struct slice {
    double track, begin, end;
  };
  std::vector<slice> slices;
  const json all = parse_json(out.str());
  for (const json& e : all.at("traceEvents").items())
    if (e.at("ph").text() == "X" && e.at("dur").number() > 0)
      slices.push_back(
          {e.at("tid").number(), e.at("ts").number(), e.at("ts").number() + e.at("dur").number()});
  CHECK(slices.size() > 200);
  std::size_t overlaps = 0;
  for (const slice& a : slices)
    for (const slice& b : slices)
      if (a.track == b.track && a.begin < b.begin && b.begin <= a.end && a.end <= b.end) ++overlaps;
  CHECK(overlaps == 0);
}

TEST_CASE("write() escapes what JSON cannot have") {
  const auto written_as = [](const std::string& name, const std::string& as) {
    const std::string text = eventful(name);
    parse_json(text);
    CAPTURE(as);
    return text.find("\"name\":\"" + as + "\"") != std::string::npos;
  };
  CHECK(written_as("a \"b\" \\ c", R"(a \"b\" \\ c)"));
  CHECK(written_as("tab\tnewline\n\x1f\x7f", R"(tab\u0009newline\u000a\u001f\u007f)"));
  CHECK(written_as("äöü € 𝄞", "äöü € 𝄞"));
  CHECK(written_as("\x80 \xc3 \xc3\x28 \xc0\xaf", R"(\ufffd \ufffd \ufffd( \ufffd\ufffd)"));
  CHECK(written_as("\xe0\x80\x80 \xed\xa0\x80", R"(\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd)"));
  CHECK(written_as("\xf0\x80\x80\x80 \xf4\x90\x80\x80 \xf5",
                   R"(\ufffd\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd \ufffd)"));
}

TEST_CASE("an empty trace is valid") {
  const trace empty;
  std::ostringstream out;
  empty.write(out);
  CHECK(parse_json(out.str()).at("traceEvents").items().empty());
  CHECK(empty.late(0ns).empty());
  CHECK(empty.lost() == 0);
}

TEST_CASE("times before the epoch are negative") {
  const auto into = std::make_shared<trace>();
  manual_timer time({.traced_by = into}, time_point(-5'000'001ns));
  time.schedule_after(1ms, doing_nothing());
  time.advance(2ms);
  std::ostringstream out;
  into->write(out);
  CHECK(out.str().find("\"ts\":-4000.001,") != std::string::npos);
}

TEST_CASE("without memory write() writes nothing, and late() throws" *
          doctest::skip(!failing_new::available)) {
  const auto into = std::make_shared<trace>();
  manual_timer time({.traced_by = into});
  std::vector<job> jobs;
  time.schedule_after(1ms, [&] { time.elapse(5ms); }, {.name = "a name that is longer than a short string"});
  for (int i = 0; i != 20; ++i)
    time.schedule_after(2ms, doing_nothing(), on([&](job j) { jobs.push_back(std::move(j)); }));
  time.advance(5ms);
  for (job& j : jobs) j();
  std::ostringstream out;
  into->write(out);
  const std::string whole = out.str();
  int failures = 0;
  for (std::size_t k = 0;; ++k) {
    REQUIRE(k < 10'000);
    struct text : std::stringbuf {
      std::streamsize written = 0;
      std::streamsize xsputn(const char*, std::streamsize n) override { return written += n, n; }
    } written;
    std::ostream to(&written);
    bool failed = false;
    {
      const failing_new failing(k);
      try {
        into->write(to);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    CHECK(written.written == (failed ? 0 : static_cast<std::streamsize>(whole.size())));
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 20);
  for (std::size_t k = 0;; ++k) {
    REQUIRE(k < 10'000);
    const failing_new failing(k);
    try {
      if (into->late(0ns).size() == 20) break;
    } catch (const std::bad_alloc&) {
    }
  }
}

TEST_CASE("recording allocates nothing" * doctest::skip(!failing_new::available)) {
  const auto into = std::make_shared<trace>();
  manual_timer time({.traced_by = into});
  int runs = 0;
  time.schedule_every(1ms, counting(runs), {.name = "a name that is longer than a short string"});
  time.advance(5ms);
  const failing_new failing;
  time.advance(100ms);
  CHECK(runs == 105);
  CHECK(!failing.struck());
}

}  // namespace scheduler_trace
