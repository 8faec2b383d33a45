// What a timer_scope and keyed_timers cost compared with the scheduler that they use: time and memory. See README.md.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer.hpp>
#include <rondo/timer_scope.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "held_bytes.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rivals/timer_rondo.hpp"
#include "timer_workloads.hpp"

namespace {

// Timers as timer_workloads.hpp describes them. pending() returns their number. All callables capture the same 16
// bytes.

template <class OnFire>
class scope_timers {
 public:
  scope_timers(std::size_t timers, OnFire on_fire) : ids_(timers), on_fire_(on_fire) {}

  void set(std::size_t which, milliseconds delay) {
    ids_[which] = scope_.schedule_after(delay, [this, which] { on_fire_(which); });
  }
  void cancel(std::size_t which) { scope_.cancel(ids_[which]); }
  std::uint64_t pending() const { return timer_.stats().pending; }

 private:
  std::vector<rondo::timer_id> ids_;
  OnFire on_fire_;
  rondo::timer timer_;
  rondo::timer_scope scope_{timer_};
};

template <class OnFire>
class keyed {
 public:
  keyed(std::size_t, OnFire on_fire) : on_fire_(on_fire) {}

  void set(std::size_t which, milliseconds delay) {
    keys_.set_after(static_cast<int>(which), delay, [this, which] { on_fire_(which); });
  }
  void cancel(std::size_t which) { keys_.cancel(static_cast<int>(which)); }
  std::uint64_t pending() const { return timer_.stats().pending; }

 private:
  OnFire on_fire_;
  rondo::timer timer_;
  rondo::keyed_timers<int> keys_{timer_};
};

/// Setting a key's timer replaces the previous one, so it need not be cancelled.
template <class OnFire>
class replaced : public keyed<OnFire> {
 public:
  using keyed<OnFire>::keyed;
  void cancel(std::size_t) noexcept {}
};

constexpr milliseconds timeout(30'000);  // no timer fires during a run

/// One producer cancels and re-arms; the driver sleeps.
template <template <class> class Timers>
measure::sample churn(std::size_t pending, std::uint64_t pairs) {
  measure::sample of_one = produce<Timers>(1, pending, pairs, [](measure::random&) { return timeout; });
  of_one.value *= 2;
  return of_one;
}

/// The memory of a pending timer, without what the caller keeps to cancel it.
template <template <class> class Timers>
measure::sample bytes(std::size_t n) {
  Timers<ignore_firing> timers(n, {});
  const std::size_t before = held_bytes();
  for (std::size_t i = 0; i != n; ++i) timers.set(i, timeout);
  const std::size_t held = held_bytes() - before;
  return {static_cast<double>(held) / static_cast<double>(n), timers.pending()};
}

}  // namespace

int main(int argc, char** argv) {
  measure::report report(measure::read_options(argc, argv));
  const std::size_t churned = report.small() ? 100 : 100'000;
  const std::uint64_t pairs = report.small() ? 1'000 : 1'000'000;
  report.compare("cancel and re-arm one of " + measure::readable(churned) + " timeouts of 30 s",
                 "ns, both together",
                 {{"scheduler", [=] { return churn<rondo_timers>(churned, pairs); }},
                  {"timer_scope", [=] { return churn<scope_timers>(churned, pairs); }},
                  {"keyed_timers: cancel and set", [=] { return churn<keyed>(churned, pairs); }},
                  {"keyed_timers: set (replaces)", [=] { return churn<replaced>(churned, pairs); }}});
  const std::size_t held = report.small() ? 1'000 : 1'000'000;
  report.compare("memory of each of " + measure::readable(held) + " pending timers", "bytes",
                 {{"scheduler", [=] { return bytes<rondo_timers>(held); }},
                  {"timer_scope", [=] { return bytes<scope_timers>(held); }},
                  {"keyed_timers<int>", [=] { return bytes<keyed>(held); }}});
  return report.finish();
}
