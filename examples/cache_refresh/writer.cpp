#include "writer.hpp"

#include <chrono>
#include <random>

#include "common/pacer.hpp"

namespace cache_refresh {

writer::writer(const writer_options& options, const std::vector<row>& rows, ledger& ledger, metrics& metrics)
    : origin_(options.database), rows_(rows), ledger_(ledger), metrics_(metrics) {
  if (options.edits_per_second == 0) return;
  thread_ = std::jthread([this, rate = options.edits_per_second, seed = options.seed](std::stop_token stop) {
    write_on(stop, rate, seed);
  });
}

void writer::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void writer::write_on(const std::stop_token& stop, double per_second, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> any_key(0, rows_.size() - 1);
  common::pacer pace(per_second);
  while (pace.wait(stop, random)) {
    try {
      edit(any_key(random));
      ++metrics_.edits;
    } catch (const sqlite::error&) {
      ++metrics_.failed_edits;  // another program held the lock for too long, or the row is gone
    }
  }
}

void writer::edit(std::size_t key) {
  origin_writer::edit change = origin_.mark(rows_[key].id, std::to_string(metrics_.edits + 1));
  ledger_.announce(key, change.version(), std::chrono::steady_clock::now());
  try {
    change.commit();
  } catch (...) {
    ledger_.withdraw(key);
    throw;
  }
}

}  // namespace cache_refresh
