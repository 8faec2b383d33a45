// Runs one hot operation many times, so that callgrind can count its instructions: see check_instructions.
//
//     instructions              lists the operations
//     instructions --build      prints how this program was built
//     instructions OPERATION    runs the operation and prints how many times
#include <rondo/manual_timer.hpp>
#include <rondo/wheel.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "environment.hpp"
#include "wheel_workloads.hpp"

/// Callgrind, which is given the name of this function, counts only what runs inside it.
extern "C" [[gnu::noinline]] void counted(const std::function<void()>& work) {
  work();
  asm volatile("");  // prevents a tail call of work, which callgrind would take for the end of this function
}

namespace {

using namespace std::chrono_literals;
using nodes = std::vector<rondo::wheel_node>;
using wheel = rondo::wheel<rondo::wheel_node>;

constexpr std::uint32_t many = 100'000;

std::vector<std::int64_t> delays(std::int64_t span, std::uint64_t seed = 1) {
  measure::random random(seed);
  std::vector<std::int64_t> result(many);
  for (auto& delay : result) delay = random.up_to(static_cast<std::uint64_t>(span));
  return result;
}

void set_all(wheel& w, nodes& all, const std::vector<std::int64_t>& delays) {
  for (std::uint32_t i = 0; i != many; ++i) w.schedule(all[i], w.now() + delays[i]);
}

std::uint64_t set(std::int64_t span, bool used) {
  nodes all(many);
  wheel w;
  if (used) {
    set_all(w, all, delays(span));
    w.advance(span, [](auto&) {});
  }
  const auto due = delays(span, 2);
  counted([&] { set_all(w, all, due); });
  return many;
}

std::uint64_t cancel_and_set() {
  nodes all(many);
  wheel w;
  set_all(w, all, delays(turn));
  const auto order = shuffled(many);
  const auto due = delays(turn, 2);
  const auto churn = [&] {
    for (std::uint32_t i = 0; i != many; ++i) {
      w.cancel(all[order[i]]);
      w.schedule(all[order[i]], due[i]);
    }
  };
  churn();  // warms up
  counted(churn);
  return many;
}

std::uint64_t cancel(std::int64_t span) {
  nodes all(many);
  wheel w;
  set_all(w, all, delays(span));
  const auto order = shuffled(many);
  counted([&] {
    for (const std::uint32_t i : order) w.cancel(all[i]);
  });
  return many;
}

std::uint64_t fire() {
  nodes all(many);
  wheel w;
  set_all(w, all, delays(turn));
  counted([&] {
    for (std::int64_t tick = 1; tick <= turn; ++tick) w.advance(tick, [](auto&) {});
  });
  return many;
}

std::uint64_t fire_and_set() {
  nodes all(many / 10);
  wheel w;
  for (std::uint32_t i = 0; i != all.size(); ++i) w.schedule(all[i], i % 100 + 1);
  const auto due = delays(100);
  std::uint64_t fired = 0;
  const auto run = [&] {
    const std::int64_t end = w.now() + 1000;
    while (w.now() != end)
      w.advance(w.now() + 1, [&](auto& n) { w.schedule(n, w.now() + due[fired++ % many]); });
  };
  run();  // warms up
  fired = 0;
  counted(run);
  return fired;
}

std::uint64_t timer_schedule_and_cancel() {
  rondo::manual_timer timer;
  const auto due = delays(turn);
  for (std::uint32_t i = 0; i != many / 10; ++i) timer.schedule_after(due[i] * 1ms, [] {});
  const auto churn = [&] {
    for (const auto delay : due) timer.cancel(timer.schedule_after(delay * 1ms, [] {}));
  };
  churn();  // warms up
  counted(churn);
  return many;
}

std::uint64_t timer_fire() {
  rondo::manual_timer timer;
  const auto due = delays(turn);
  const auto set = [&] {
    for (const auto delay : due) timer.schedule_after(delay * 1ms, [] {});
  };
  set();  // warms up
  timer.advance(turn * 1ms);
  set();
  counted([&] { timer.advance(turn * 1ms); });
  return many;
}

std::uint64_t timer_periodic() {
  rondo::manual_timer timer;
  std::uint64_t fired = 0;
  for (std::uint32_t i = 0; i != many / 100; ++i)
    timer.schedule_every((i % 100 + 1) * 1ms, [&fired] { ++fired; });
  timer.advance(1s);  // warms up
  fired = 0;
  counted([&] { timer.advance(1s); });
  return fired;
}

struct operation {
  std::string_view name;
  std::function<std::uint64_t()> run;
};

const std::vector<operation> operations{
    {"wheel_set_fresh", [] { return set(turn, false); }},
    {"wheel_set", [] { return set(turn, true); }},
    {"wheel_set_24h", [] { return set(day, false); }},
    {"wheel_cancel_and_set", cancel_and_set},
    {"wheel_cancel_24h", [] { return cancel(day); }},
    {"wheel_fire", fire},
    {"wheel_fire_and_set", fire_and_set},
    {"timer_schedule_and_cancel", timer_schedule_and_cancel},
    {"timer_fire", timer_fire},
    {"timer_periodic", timer_periodic},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (wanted == "--build") {
    const measure::environment here = measure::this_environment();
    std::printf("%s, %s\n", here.compiler.c_str(), here.optimisation.c_str());
    return 0;
  }
  for (const operation& o : operations) {
    if (wanted.empty()) {
      std::puts(std::string(o.name).c_str());
    } else if (wanted == o.name) {
      std::printf("%llu\n", static_cast<unsigned long long>(o.run()));
      return 0;
    }
  }
  return wanted.empty() ? 0 : 2;
}
