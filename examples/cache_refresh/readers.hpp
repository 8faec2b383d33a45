// The readers: threads that read through the cache and record how good the values were.
#pragma once

#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

#include "ledger.hpp"
#include "loader.hpp"
#include "measured.hpp"
#include "zipf.hpp"

namespace cache_refresh {

struct reader_options {
  std::size_t threads = 1;
  unsigned reads_per_second = 0;  // of all threads together
  rondo::duration patience = std::chrono::seconds(2);
  std::uint64_t seed = 0;
};

class readers {
 public:
  readers(const reader_options&, const zipf&, record_cache&, const ledger&, measured&);
  ~readers() { stop(); }

  void stop();

 private:
  void read_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void read(key_number);

  const rondo::duration patience_;
  const zipf& popular_;
  record_cache& cache_;
  const ledger& ledger_;
  measured& measured_;
  std::vector<std::jthread> threads_;
};

}  // namespace cache_refresh
