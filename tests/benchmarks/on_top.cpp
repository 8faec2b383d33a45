// What a timer_scope and keyed_timers cost compared with the scheduler that they use, and with what people write by hand: time
// and memory. See README.md.
#include <rondo/keyed_timers.hpp>
#include <rondo/timer.hpp>
#include <rondo/timer_scope.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "held_bytes.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "rivals/keyed_by_hand.hpp"
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
    set_task(which, delay, [this, which] { fire(which); });
  }
  void cancel(std::size_t which) { keys_.cancel(static_cast<int>(which)); }
  std::uint64_t pending() const { return timer_.stats().pending; }

 protected:
  template <class F>
  void set_task(std::size_t which, milliseconds delay, F&& work) {
    keys_.set_after(static_cast<int>(which), delay, std::forward<F>(work));
  }
  void fire(std::size_t which) { on_fire_(which); }

 private:
  OnFire on_fire_;
  rondo::timer timer_;
  rondo::keyed_timers<int> keys_{timer_};
};

/// Setting a key's timer replaces the previous one, so it need not be cancelled.
template <template <class> class Keyed>
struct replacing {
  template <class OnFire>
  class timers : public Keyed<OnFire> {
   public:
    using Keyed<OnFire>::Keyed;
    void cancel(std::size_t) noexcept {}
  };
};
template <class OnFire>
using replaced = replacing<keyed>::timers<OnFire>;

/// As `replaced`, with callables that own something: a second timer takes the place of the first.
template <class OnFire>
class owning : public replaced<OnFire> {
 public:
  using replaced<OnFire>::replaced;
  void set(std::size_t which, milliseconds delay) {
    this->set_task(which, delay, [this, held = owned_, which] { this->fire(which); });
  }

 private:
  std::shared_ptr<int> owned_ = std::make_shared<int>();
};

constexpr milliseconds timeout(30'000);  // no timer fires during a run

/// Producers cancel and re-arm timers of one object; the driver sleeps.
template <template <class> class Timers>
measure::sample churn(std::size_t pending, std::uint64_t pairs, std::size_t producers = 1) {
  measure::sample of_one =
      produce<Timers>(producers, pending / producers, pairs, [](measure::random&) { return timeout; });
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
  const std::string one_of = "one of " + measure::readable(churned) + " timeouts of 30 s";
  const auto both = "ns, both together";
  report.compare("cancel and re-arm " + one_of, both,
                 {{"scheduler", [=] { return churn<rondo_timers>(churned, pairs); }},
                  {"timer_scope", [=] { return churn<scope_timers>(churned, pairs); }},
                  {"keyed_timers: cancel and set", [=] { return churn<keyed>(churned, pairs); }},
                  {"keyed_timers: set (replaces)", [=] { return churn<replaced>(churned, pairs); }},
                  {"– with a callable that owns", [=] { return churn<owning>(churned, pairs); }}});
  report.compare("by key, cancel and re-arm " + one_of, both,
                 {
                     {"keyed_timers", [=] { return churn<keyed>(churned, pairs); }},
#ifdef WITH_ASIO
                     {"map of asio::steady_timer", [=] { return churn<keyed_asio>(churned, pairs); }},
#endif
#ifdef WITH_LIBEVENT
                     {"map of libevent events", [=] { return churn<keyed_libevent>(churned, pairs); }},
#endif
                 });
  report.compare(
      "by key, re-arm " + one_of, "ns",
      {
          {"keyed_timers", [=] { return churn<replaced>(churned, pairs); }},
#ifdef WITH_ASIO
          {"map of asio::steady_timer", [=] { return churn<replacing<keyed_asio>::timers>(churned, pairs); }},
#endif
#ifdef WITH_LIBEVENT
          {"map of libevent events",
           [=] { return churn<replacing<keyed_libevent>::timers>(churned, pairs); }},
#endif
      });
  report.compare("by key, two threads, cancel and re-arm " + one_of, both,
                 {
                     {"keyed_timers", [=] { return churn<keyed>(churned, pairs, 2); }},
#ifdef WITH_ASIO
                     {"map of asio::steady_timer", [=] { return churn<keyed_asio>(churned, pairs, 2); }},
#endif
#ifdef WITH_LIBEVENT
                     {"map of libevent events", [=] { return churn<keyed_libevent>(churned, pairs, 2); }},
#endif
                 });
  const std::size_t held = report.small() ? 1'000 : 1'000'000;
  report.compare("memory of each of " + measure::readable(held) + " pending timers", "bytes",
                 {
                     {"scheduler", [=] { return bytes<rondo_timers>(held); }},
                     {"timer_scope", [=] { return bytes<scope_timers>(held); }},
                     {"keyed_timers<int>", [=] { return bytes<keyed>(held); }},
#ifdef WITH_ASIO
                     {"map of asio::steady_timer", [=] { return bytes<keyed_asio>(held); }},
#endif
#ifdef WITH_LIBEVENT
                     {"map of libevent events", [=] { return bytes<keyed_libevent>(held); }},
#endif
                 });
  return report.finish();
}
