// The writer changes random values at the origin, as its users would, and enters each change in the ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ledger.hpp"
#include "measured.hpp"
#include "origin.hpp"

namespace cache_refresh {

struct writer_options {
  unsigned edits_per_second = 0;
  std::uint64_t seed = 0;
};

class writer {
 public:
  // Does nothing for an origin that this program cannot change.
  writer(const writer_options&, origin&, const std::vector<std::string>& names, ledger&, measured&);
  ~writer() { stop(); }

  void stop();

 private:
  void write_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void edit(std::size_t key);
  void settle_unknown(std::size_t key, const std::string& before);

  const std::unique_ptr<origin_editor> editor_;
  const std::unique_ptr<origin_connection> origin_;
  const std::vector<std::string>& names_;
  ledger& ledger_;
  measured& measured_;
  std::jthread thread_;
};

}  // namespace cache_refresh
