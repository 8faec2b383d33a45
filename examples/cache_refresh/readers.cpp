#include "readers.hpp"

#include <random>

#include "common/pacer.hpp"

namespace cache_refresh {
namespace {

using clock = rondo::scheduler::clock;
using namespace std::chrono_literals;

constexpr rondo::duration patience_on_miss = 100ms;

// Zipf's law: the k-th most popular key is read 1/k as often as the most popular one.
std::discrete_distribution<key_number> popularity(std::size_t keys, bool skewed) {
  std::vector<double> weights(keys, 1.0);
  for (std::size_t rank = 0; skewed && rank < keys; ++rank)
    weights[rank] = 1.0 / static_cast<double>(rank + 1);
  return {weights.begin(), weights.end()};
}

}  // namespace

readers::readers(reader_options options, cache& cache, refresher& refresher, const ledger& ledger,
                 metrics& metrics)
    : skewed_(options.skewed), cache_(cache), refresher_(refresher), ledger_(ledger), metrics_(metrics) {
  if (options.reads_per_second == 0) return;
  const double each = static_cast<double>(options.reads_per_second) / static_cast<double>(options.threads);
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back(
        [this, each, seed = options.seed + i](std::stop_token stop) { read_on(stop, each, seed); });
  }
}

void readers::stop() {
  for (std::jthread& each : threads_) each.request_stop();
  threads_.clear();
}

void readers::read_on(const std::stop_token& stop, double per_second, std::uint64_t seed) {
  random_source random(seed);
  auto popular = popularity(cache_.size(), skewed_);
  common::pacer pace(per_second);
  while (pace.wait(stop, random)) read(popular(random));
}

void readers::read(key_number key) {
  ++metrics_.reads;
  served got = cache_.find(key, clock::now());
  if (got.value != nullptr) {
    ++metrics_.hits;
    if (got.stale) ++metrics_.stale_hits;
  } else {
    refresher_.load_first(key);
    got = cache_.await_first(key, patience_on_miss);
    if (got.value == nullptr) return;
  }
  // The clock is read after the value, so no read counts as less far behind than it was.
  const rondo::duration behind = ledger_.behind(key, got.value->version, clock::now());
  metrics_.behind.record(behind);
  if (behind == rondo::duration::zero()) ++metrics_.current;
}

}  // namespace cache_refresh
