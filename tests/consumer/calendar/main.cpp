// A small program with calendar timers. Exits with status 0 if they work.
#include <chrono>
#include <future>
#include <iostream>
#include <optional>
#include <string>

#include <rondo/calendar.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/timer.hpp>

using namespace std::chrono_literals;

namespace {

bool system_clock_works() {
  std::promise<void> over;
  const auto write_report = [] {};
  const auto update_prices = [] {};
  const auto close_sale = [&over] { over.set_value(); };
  const auto end_of_sale = std::chrono::system_clock::now() + 50ms;

  rondo::timer timer;
  rondo::calendar_timers timers(timer);
  timers.schedule(rondo::daily(6h + 30min, "Europe/Berlin"), write_report);
  timers.schedule(rondo::cron("*/15 9-17 * * mon-fri", "America/New_York"), update_prices);
  timers.schedule_at(end_of_sale, close_sale);

  over.get_future().wait();
  return std::chrono::system_clock::now() >= end_of_sale && timers.pending() == 2;
}

bool virtual_time_works() {
  std::string runs;
  const auto note = [&runs](const rondo::wall_firing& f) {
    runs += std::to_string(f.wall_due.time_since_epoch() / 1h % 24) + ' ';
  };

  using namespace std::chrono;
  rondo::manual_timer time;
  rondo::manual_wall_clock wall(time, sys_days(2026y / March / 28));
  rondo::calendar_timers timers(time, wall);
  timers.schedule(rondo::daily(2h + 30min, "Europe/Berlin"), note);
  time.advance(72h);  // the clocks are set forward on the 29th, from 02:00 to 03:00, at 01:00 UTC

  return runs == "1 1 0 ";
}

bool own_points_work() {
  using namespace std::chrono;
  rondo::manual_timer time;
  rondo::manual_wall_clock wall(time, sys_days(2026y / March / 28));
  rondo::calendar_timers timers(time, wall);
  int closed = 0;
  const auto close_gates = [&closed] { ++closed; };
  const auto next_tide = [](rondo::wall_time after) { return std::optional(after + 12h + 25min); };
  const rondo::calendar high_tides =
      rondo::calendar_of([&](rondo::wall_time after) { return next_tide(after); });
  timers.schedule(high_tides, close_gates);
  time.advance(25h);
  return closed == 2;
}

bool zone_data_are_refreshed() {
  std::string said;
  const auto log = [&said](const std::string& line) { said += line; };
  if (rondo::refresh_zone_data()) log("zone data " + rondo::zone_data_version());
  return said.empty();  // nobody has updated them meanwhile
}

}  // namespace

int main() {
  const bool works =
      system_clock_works() && virtual_time_works() && own_points_work() && zone_data_are_refreshed();
  std::cout << (works ? "the calendar works\n" : "the calendar does not work\n");
  return works ? 0 : 1;
}
