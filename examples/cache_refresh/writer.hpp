// The writer: changes random rows at the origin, as editors would, and enters each change in the ledger.
#pragma once

#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include "ledger.hpp"
#include "metrics.hpp"
#include "origin.hpp"

namespace cache_refresh {

struct writer_options {
  std::filesystem::path database;
  unsigned edits_per_second = 0;
  std::uint64_t seed = 0;
};

class writer {
 public:
  writer(const writer_options&, const std::vector<row>& rows, ledger&, metrics&);

  void stop();

 private:
  void write_on(const std::stop_token&, double per_second, std::uint64_t seed);
  void edit(std::size_t key);

  origin_writer origin_;
  const std::vector<row>& rows_;
  ledger& ledger_;
  metrics& metrics_;
  std::jthread thread_;
};

}  // namespace cache_refresh
