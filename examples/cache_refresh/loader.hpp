// The loader: threads that ask the origin, each on a connection of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "measured.hpp"
#include "origin.hpp"
#include "refreshing_cache.hpp"

namespace cache_refresh {

using key_number = std::uint32_t;  // the index of a name in the origin's list
using record_cache = refreshing_cache<key_number, record>;

struct loader_options {
  std::size_t threads = 1;
  rondo::duration limit = std::chrono::seconds(2);  // for each load
  std::optional<rondo::duration> soft_ttl;          // overrides what the origin says
};

class loader {
 public:
  loader(const loader_options&, origin&, const std::vector<std::string>& names, measured&, landings&);
  ~loader() { stop(); }

  void begin(record_cache::load);

  // Fails the loads that wait for a thread. Returns when the others have ended.
  void stop();

  // The latest failure in one line; empty if there was none.
  std::string last_error() const;

 private:
  void load(origin_connection&, record_cache::load);

  const loader_options options_;
  const std::vector<std::string>& names_;
  measured& measured_;
  landings& landings_;

  mutable std::mutex lock_;
  std::condition_variable_any came_;
  std::deque<record_cache::load> waiting_;
  std::string last_error_;

  std::vector<std::unique_ptr<origin_connection>> connections_;
  std::vector<std::jthread> threads_;  // last member: they use the others
};

}  // namespace cache_refresh
