// The readers: threads that read through the cache and judge what they were served.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "cache.hpp"
#include "ledger.hpp"
#include "metrics.hpp"
#include "refresher.hpp"

namespace cache_refresh {

struct reader_options {
  std::size_t threads = 1;
  unsigned reads_per_second = 0;  // of all together
  bool skewed = true;             // some keys are read far more often than others
  std::uint64_t seed = 0;
};

class readers {
 public:
  readers(reader_options, cache&, refresher&, const ledger&, metrics&);
  ~readers() { stop(); }

  void stop();

 private:
  void read_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void read(key_number);

  const bool skewed_;
  cache& cache_;
  refresher& refresher_;
  const ledger& ledger_;
  metrics& metrics_;
  std::vector<std::jthread> threads_;
};

}  // namespace cache_refresh
