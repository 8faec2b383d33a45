// The report at the end.
#pragma once

#include <cinttypes>
#include <cstdio>
#include <string>

#include "invariants.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "station.hpp"

namespace soak {

/// Three significant digits, and a suitable unit.
inline std::string readable(rondo::duration d) {
  const auto count = static_cast<double>(d.count());
  char text[32];
  if (count >= 1e9)
    std::snprintf(text, sizeof text, "%.3g s", count / 1e9);
  else if (count >= 1e6)
    std::snprintf(text, sizeof text, "%.3g ms", count / 1e6);
  else
    std::snprintf(text, sizeof text, "%.3g us", count / 1e3);
  return text;
}

inline void print_station(station& s) {
  const rondo::statistics now = s.timers().stats();
  std::printf("%s\n", s.name());
  std::printf("  timers     %" PRIu64 " scheduled, %" PRIu64 " completed, %" PRIu64 " cancelled, %" PRIu64
              " refused\n",
              now.scheduled, now.completed, now.cancelled, s.books().refused.load());
  std::printf("  runs       %" PRIu64 " fired, %" PRIu64 " failed, %" PRIu64 " rejected; points %" PRIu64
              " missed, %" PRIu64 " overlapped\n",
              now.fired, now.failed, now.rejected, now.missed, now.overlapped);
  std::printf("  lateness   p50 %s, p99 %s, max %s; run time p99 %s\n",
              readable(now.lateness.quantile(0.5)).c_str(), readable(now.lateness.quantile(0.99)).c_str(),
              readable(now.lateness.max()).c_str(), readable(now.run_time.quantile(0.99)).c_str());
  std::printf("  driver     %" PRIu64 " wake-ups\n", now.wakeups);
}

inline void print_invariants() {
  std::printf("invariants\n");
  int looked_at = 0;
  for (std::size_t i = 0; i != invariant_names.size(); ++i) {
    const auto which = static_cast<invariant>(i);
    const std::uint64_t checked = always().checked(which);
    looked_at += checked != 0;
    std::printf("  %12" PRIu64 " %s", checked, invariants::name(which));
    if (always().violated(which) != 0) std::printf(": %" PRIu64 " VIOLATED", always().violated(which));
    std::printf("\n");
  }
  std::printf("%d invariants checked %" PRIu64 " times, %" PRIu64 " violated\n", looked_at,
              always().checked(), always().violated());
}

inline void print_process(double seconds, const memory& held) {
  const usage used = used_so_far();
  std::printf("process\n");
  std::printf("  cpu        %.1f s in %.1f s: %.0f %% of one core\n", used.cpu_seconds, seconds,
              100 * used.cpu_seconds / seconds);
  std::printf("  memory     %.1f MiB resident at 20 %% of the time, %.1f MiB at the end (allowed: %.1f)\n",
              held.early(), held.last(), held.most());
  std::printf("  switches   %ld voluntary\n", used.voluntary_switches);
}

}  // namespace soak
