// Random programs of dispatchers and faults, until the time is over or something is wrong.
//   --seconds S   how long (default: 10)
//   --crashes N   at least so many deaths of processes, however long that takes
//   --returns N   at least so often, the database goes back to an earlier state
//   --first N     from this seed on, instead of a random one
//   --seed N      only the program of this seed, with all that happens in it
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>

#include "durable/simulation.hpp"

namespace {

using namespace durable_test;

struct arguments {
  double seconds = 10;
  std::uint64_t crashes = 0, returns = 0, first = 0;
  bool one = false;
};

arguments parse(int argc, char** argv) {
  arguments a;
  a.first = (std::uint64_t{std::random_device{}()} << 16U);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--seconds")
      a.seconds = std::stod(value);
    else if (name == "--crashes")
      a.crashes = std::stoull(value);
    else if (name == "--returns")
      a.returns = std::stoull(value);
    else if (name == "--first")
      a.first = std::stoull(value);
    else if (name == "--seed") {
      a.first = std::stoull(value);
      a.one = true;
    } else
      throw std::invalid_argument("there is no option " + name);
  }
  if (argc % 2 == 0) throw std::invalid_argument(std::string("there is no value after ") + argv[argc - 1]);
  return a;
}

/// Prints the last events, at most so many. Returns false if something is wrong.
bool replay(std::uint64_t seed, std::size_t most) {
  std::deque<std::string> last;
  const simulation_result r = simulate(seed, [&](const std::string& event) {
    last.push_back(event);
    if (last.size() > most) last.pop_front();
  });
  for (const std::string& event : last) std::cout << event << '\n';
  std::cout << "seed " << seed << ", checksum " << r.checksum << ": "
            << (r.wrong.empty() ? "nothing is wrong" : r.wrong) << '\n';
  return r.wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const arguments a = parse(argc, argv);
    if (a.one) return replay(a.first, 1'000'000) ? 0 : 1;
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    simulation_counts sum;
    std::uint64_t programs = 0, runs = 0, checksum = 0;
    const auto passed = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
    while (passed() < a.seconds || sum.deaths < a.crashes || sum.returns < a.returns) {
      const std::uint64_t seed = a.first + programs++;
      const simulation_result r = simulate(seed);
      checksum = checksum * 31 + r.checksum;
      runs += r.runs;
      sum.add(r.counts);
      if (r.wrong.empty()) continue;
      std::cout << "--seed " << seed << " goes wrong, after " << sum.deaths << " deaths and " << sum.returns
                << " returns to earlier states:\n";
      replay(seed, 60);
      return 1;
    }
    std::cout << programs << " programs from seed " << a.first << " in " << passed() << " s, checksum "
              << checksum << "\n  " << runs << " runs, " << sum.turns << " steps of dispatchers, "
              << sum.deaths << " deaths (" << static_cast<double>(sum.deaths) / passed() << " a second), "
              << sum.stops << " stops, " << sum.server_crashes << " crashes of the server, " << sum.returns
              << " returns to earlier states, " << sum.breaks << " broken connections, " << sum.stalls
              << " stalls, " << sum.clock_steps << " steps of the clock\n";
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
