#include "readers.hpp"

#include "common/pacer.hpp"

namespace cache_refresh {

using clock = rondo::scheduler::clock;

readers::readers(const reader_options& options, const zipf& popular, record_cache& cache,
                 const ledger& ledger, measured& measured)
    : patience_(options.patience), popular_(popular), cache_(cache), ledger_(ledger), measured_(measured) {
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
  std::mt19937_64 random(seed);
  common::pacer pace(per_second);
  while (pace.wait(stop, random)) read(popular_.pick(random));
}

void readers::read(key_number key) {
  const clock::time_point start = clock::now();
  const record_cache::found got = cache_.wait_for(key, patience_);
  // Taken after the value arrived, so that no read counts as less far behind than it was.
  const clock::time_point end = clock::now();
  measured_.reads.record(end - start);
  if (got.waited) ++measured_.waited;
  if (got.value == nullptr) {
    ++measured_.unserved;
    return;
  }
  if (got.stale) ++measured_.stale;
  measured_.ages.record(got.age);
  const rondo::duration behind = ledger_.behind(key, got.value->validator, end);
  measured_.behind.record(behind);
  if (behind == rondo::duration::zero()) ++measured_.current;
}

}  // namespace cache_refresh
