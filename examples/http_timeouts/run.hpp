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
  std::string answer_to_endless;     // to a chunk header that never ends
  std::string answer_to_head;        // to a HEAD request
  quantiles waits;                   // for answers
  std::uint64_t cut_under_load = 0;  // connections of regular clients
  std::uint64_t regular_cut_early = 0;
  std::uint64_t regular_not_cut = 0;
  slow_clients::counts slow;
  quantiles slow_seen;  // from the limit to the moment at which the client noticed
  std::chrono::nanoseconds clients_processor{};
};

// Allows the process the resources that a run takes. If that fails, returns the reason.
std::optional<std::string> lack_for(const options&);

// Throws std::runtime_error if the server has failed, or not all clients could connect.
outcome run(const options&);

// Returns a sentence for each fault.
std::vector<std::string> faults_of(const options&, const outcome&);

}  // namespace http_timeouts
