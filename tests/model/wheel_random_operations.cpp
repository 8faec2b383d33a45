// The wheel, compared with its model. How to replay a failure: see base_seed().
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "times_slower.hpp"
#include "wheel_trial.hpp"

namespace model_wheel_random_operations {

using namespace model;

constexpr tick_number far = tick_number{1} << 40;

template <class Kind>
void run_trials(const world& w, const std::string& kind, std::uint64_t trials, std::size_t steps) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t number = 0; number != trials; ++number) {
    INFO("world '", w.name, "', ", kind, ", trial ", number, ", base seed: RONDO_TEST_SEED=", seed);
    wheel_trial<Kind> trial(w, random_numbers(seed, number));
    trial.run(steps);
    trial.finish();
  }
}

/// Runs trials on wheels of all kinds; fewer on those that are not public.
template <std::size_t Size>
void run_worlds(const world (&worlds)[Size], std::uint64_t trials, std::size_t steps) {
  trials = rondo::test::shortened(trials);
  const std::uint64_t fewer = rondo::test::times_slower == 1 ? (trials + 7) / 8 : 1;
  for (const world& w : worlds) {
    run_trials<public_wheel>(w, "the public wheel", trials, steps);
    run_trials<small_parts>(w, "redistributing three at a time", fewer, steps);
    run_trials<any_order>(w, "the wheel of a shard", 2 * fewer, steps);
  }
}

TEST_CASE("wheels of all sizes do what the model does") {
  const world worlds[] = {
      {"1 bucket, near", 1, 0, delays::within_turns, 12},
      {"1 bucket, far", 1, 0, delays::any_magnitude, 40},
      {"2 buckets, near", 2, 0, delays::within_turns, 12},
      {"2 buckets, far", 2, 7, delays::any_magnitude, 40},
      {"8 buckets, near", 8, 5, delays::within_turns, 30},
      {"8 buckets, far", 8, 0, delays::any_magnitude, 40},
      {"512 buckets, near", 512, 0, delays::within_turns, 60},
      {"512 buckets, far", 512, 3, delays::any_magnitude, 60},
      {"4096 buckets, near", 4096, 0, delays::within_turns, 60},
      {"4096 buckets, far", 4096, 0, delays::any_magnitude, 60},
  };
  run_worlds(worlds, 40, 600);
}

TEST_CASE("wheels with many rounds in one bucket do what the model does") {
  const world worlds[] = {
      {"2 buckets", 2, 0, delays::one_bucket, 40},
      {"8 buckets", 8, 5, delays::one_bucket, 40},
      {"8 buckets, far", 8, 0, delays::one_bucket_far, 40},
      {"512 buckets", 512, 11, delays::one_bucket, 60},
      {"512 buckets, far", 512, 0, delays::one_bucket_far, 60},
      {"8 buckets, across zero", 8, -80, delays::one_bucket, 40},
  };
  run_worlds(worlds, 40, 800);
}

TEST_CASE("wheels with bursts on few ticks do what the model does") {
  const world worlds[] = {
      {"1 bucket", 1, 0, delays::bursts, 60},
      {"8 buckets", 8, 0, delays::bursts, 60},
      {"512 buckets", 512, 0, delays::bursts, 60},
      {"8 buckets, many timers", 8, 0, delays::bursts, 600},
  };
  run_worlds(worlds, 20, 1000);
}

TEST_CASE("wheels with a later turn that fills up, and timers before it, do what the model does") {
  const world worlds[] = {
      {"8 buckets", 8, 0, delays::full_turns, 60},
      {"64 buckets", 64, -1000, delays::full_turns, 100},
      {"512 buckets", 512, 0, delays::full_turns, 200},
  };
  run_worlds(worlds, 20, 1000);
}

TEST_CASE("wheels whose timeouts are cancelled and set again do what the model does") {
  const world worlds[] = {
      {"1 bucket", 1, 0, delays::timeouts, 40},
      {"8 buckets", 8, 0, delays::timeouts, 60},
      {"64 buckets", 64, -1000, delays::timeouts, 100},
      {"8 buckets, many timers", 8, 0, delays::timeouts, 600},
  };
  run_worlds(worlds, 20, 1000);
}

TEST_CASE("wheels with past and negative ticks, and at the ends of all ticks, do what the model does") {
  const world worlds[] = {
      {"past and future", 8, 0, delays::past_and_future, 40},
      {"past and future, 512 buckets", 512, -far, delays::past_and_future, 40},
      {"from a negative tick across zero", 8, -20, delays::within_turns, 30},
      {"from the first tick", 8, first_tick, delays::within_turns, 30},
      {"from the first tick, far", 8, first_tick, delays::any_magnitude, 40},
      {"near the first tick, with a past", 64, first_tick + 50, delays::past_and_future, 40},
      {"up to the last tick", 8, last_tick - 60, delays::within_turns, 30},
      {"up to the last tick, far", 512, last_tick - far, delays::any_magnitude, 40},
      {"past the last tick, one bucket", 4, last_tick - 300, delays::one_bucket, 40},
      {"anywhere, 1 bucket", 1, 0, delays::anywhere, 40},
      {"anywhere, 8 buckets", 8, first_tick, delays::anywhere, 40},
      {"anywhere, 4096 buckets", 4096, -1, delays::anywhere, 40},
  };
  run_worlds(worlds, 40, 600);
}

TEST_CASE("wheels with thousands of timers do what the model does") {
  const world worlds[] = {
      {"8 buckets", 8, 0, delays::any_magnitude, 3000},
      {"512 buckets", 512, 0, delays::within_turns, 3000},
      {"512 buckets, far", 512, -1, delays::any_magnitude, 3000},
      {"one bucket", 64, 0, delays::one_bucket_far, 3000},
      {"one list far away", 16, 0, delays::one_list, 3000},
      {"one list far away, 512 buckets", 512, -far, delays::one_list, 3000},
  };
  run_worlds(worlds, 3, 12000);
}

TEST_CASE("wheels do what the model does across the ticks where narrower integers overflow") {
  for (const int bits : {31, 32, 53, 62}) {
    for (const tick_number sign : {-1, 1}) {
      const tick_number before = sign * (tick_number{1} << bits) - 100;
      const std::string name = (sign < 0 ? "across -2^" : "across 2^") + std::to_string(bits);
      const world worlds[] = {
          {name + ", 1 bucket", 1, before, delays::past_and_future, 30},
          {name + ", 64 buckets", 64, before, delays::within_turns, 30},
          {name + ", 512 buckets", 512, before, delays::any_magnitude, 40},
          {name + ", 4096 buckets", 4096, before, delays::one_bucket_far, 40},
      };
      run_worlds(worlds, 5, rondo::test::shortened(400));
    }
  }
}

}  // namespace model_wheel_random_operations
