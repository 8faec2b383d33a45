// dump() draws what there is. (shown.cpp tests the drawing itself.)
#include <sstream>
#include <vector>

#include "scheduler/virtual_time.hpp"

namespace scheduler_dump {

using namespace rondo;
using namespace rondo::test;

std::string dumped(const rondo::scheduler& s) {
  std::ostringstream text;
  s.dump(text);
  return text.str();
}

TEST_CASE("dump() draws the buckets in the order of the delay queue, and timers that are not in the wheel") {
  std::vector<job> jobs;
  manual_timer time({.run_on = [&](job j) { jobs.push_back(std::move(j)); }});
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  time.schedule_after(20ms, doing_nothing());
  time.schedule_after(3ms, doing_nothing());
  time.schedule_after(3ms, doing_nothing());
  time.schedule_after(515ms, doing_nothing());
  time.schedule_after(duration::max(), doing_nothing());
  CHECK(dumped(time) ==
        "rondo at tick 1 (1 ms each): 3 nodes in 2 of 512 buckets, 1 further away\n"
        "  not in the wheel: 1 never due, 1 with the executor\n"
        "  delay queue, 2 buckets, the earliest first:\n"
        "    #    bucket  tick  due       nodes\n"
        "    1         4     4  in 3 ms       2\n"
        "    2        21    21  in 20 ms      1\n"
        "  far: 1 node in 515 ms\n"
        "  spread, 8 buckets a column, █ = 2 nodes:\n"
        "    |█·▄·····························································|\n"
        "     ^ now\n");
}

TEST_CASE("dump() inside a task shows what is running and what the pass has yet to begin") {
  manual_timer time;
  std::string text;
  time.schedule_after(1ms, [&] { text = dumped(time); });
  time.schedule_after(1ms, doing_nothing());
  time.advance(1ms);
  CHECK(text.find("1 ready in the pass in progress, 1 running") != std::string::npos);
}

TEST_CASE("dump() of an empty or stopped scheduler shows no timers") {
  manual_timer time;
  CHECK(dumped(time) == "rondo at tick 0 (1 ms each): 0 nodes in 0 of 512 buckets\n");
  time.schedule_after(1ms, doing_nothing());
  time.stop();
  CHECK(dumped(time).find("0 nodes in 0 of 512 buckets") != std::string::npos);
}

TEST_CASE("the stream of dump() may call the scheduler: no lock is held while it is written to") {
  struct calling_buffer : std::stringbuf {
    manual_timer* time = nullptr;
    std::streamsize xsputn(const char* text, std::streamsize n) override {
      time->schedule_after(1ms, doing_nothing());
      time->advance(1ms);
      return std::stringbuf::xsputn(text, n);
    }
  };
  manual_timer time;
  calling_buffer buffer;
  buffer.time = &time;
  std::ostream out(&buffer);
  time.dump(out);
  CHECK(time.stats().fired == 1);
}

}  // namespace scheduler_dump
