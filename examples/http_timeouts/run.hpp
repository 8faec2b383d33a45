// One run: a server in a process of its own, and the clients in this one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "regular_clients.hpp"
#include "server.hpp"
#include "slow_clients.hpp"

namespace http_timeouts {

struct quantiles {
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p99{};
  std::chrono::nanoseconds max{};
};

struct outcome {
  timers with{};
  std::chrono::nanoseconds measured{};
  server_report server;
  std::uint64_t answers = 0;
  std::uint64_t wrong_answers = 0;
  quantiles waits;                   // for answers
  std::uint64_t cut_under_load = 0;  // connections of regular clients
  std::uint64_t regular_cut_early = 0;
  std::uint64_t regular_not_cut = 0;
  slow_clients::counts slow;
  quantiles slow_seen;  // from the limit to the moment at which the client noticed
  std::chrono::nanoseconds clients_processor{};
};

// Lets the process have what a run takes. If it may not: why.
std::optional<std::string> lack_for(const options&);

// Throws std::runtime_error if no server could be measured: it has failed, or did not get all connections.
outcome run(const options&);

// A sentence for each thing that must not be.
std::vector<std::string> faults_of(const options&, const outcome&);

}  // namespace http_timeouts
