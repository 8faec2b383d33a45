// graphile-worker, a job queue for PostgreSQL and Node.js, in a process of its own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "measure.hpp"

namespace durable_workloads {

class graphile_worker {
 public:
  /// The folder that graphile_worker/run has prepared. Null if the comparison was not asked for.
  static const char* folder() noexcept { return std::getenv("RONDO_GRAPHILE_WORKER"); }

  /// Makes its tables in the database.
  explicit graphile_worker(const std::string& url);
  ~graphile_worker();
  graphile_worker(const graphile_worker&) = delete;
  graphile_worker& operator=(const graphile_worker&) = delete;

  /// One of the commands in graphile_worker/contender.mjs.
  measure::sample run(const std::string& command) const;

 private:
  std::FILE *commands_, *answers_;
  int id_;
};

}  // namespace durable_workloads
