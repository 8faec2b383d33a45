#include "users.hpp"

#include <chrono>
#include <functional>

#include "common/pacer.hpp"

namespace cache_refresh {
namespace {

using clock = rondo::scheduler::clock;

constexpr std::chrono::seconds edit_patience{2};

std::uint64_t hash(const std::string& validator) { return std::hash<std::string>{}(validator); }

}  // namespace

void ledger::supersede(std::size_t key, const std::string& validator, rondo::time_point at) {
  const std::lock_guard guard(lock_of(key));
  histories_[key].past.push_back({hash(validator), at});
  histories_[key].newest = 0;
}

void ledger::settle(std::size_t key, const std::string& newest) {
  const std::lock_guard guard(lock_of(key));
  histories_[key].newest = hash(newest);
}

void ledger::withdraw(std::size_t key) {
  const std::lock_guard guard(lock_of(key));
  history& of_key = histories_[key];
  of_key.newest = of_key.past.back().value;
  of_key.past.pop_back();
}

rondo::duration ledger::behind(std::size_t key, const std::string& validator,
                               rondo::time_point served_at) const {
  const std::uint64_t value = hash(validator);
  const std::lock_guard guard(lock_of(key));
  const history& of_key = histories_[key];
  if (of_key.past.empty() || value == of_key.newest) return rondo::duration::zero();
  const auto found = std::find_if(of_key.past.rbegin(), of_key.past.rend(),
                                  [&](const superseded& s) { return s.value == value; });
  // If not found, it is newer than what the writer knows. If superseded after it was served, it was current.
  return found == of_key.past.rend() ? rondo::duration::zero()
                                     : std::max(served_at - found->at, rondo::duration::zero());
}

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

writer::writer(const writer_options& options, origin& changed, const std::vector<std::string>& names,
               ledger& ledger, measured& measured)
    : editor_(options.edits_per_second == 0 ? nullptr : changed.edit()),
      origin_(changed.connect()),
      names_(names),
      ledger_(ledger),
      measured_(measured) {
  if (editor_ == nullptr) return;
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
  std::uniform_int_distribution<std::size_t> any_key(0, names_.size() - 1);
  common::pacer pace(per_second);
  while (pace.wait(stop, random)) {
    try {
      edit(any_key(random));
      ++measured_.edits;
    } catch (const origin_error&) {
      ++measured_
            .failed_edits;  // another program held a lock too long, the key is gone, or the origin is down
    }
  }
}

void writer::edit(std::size_t key) {
  const answer old = origin_->load(names_[key], nullptr, edit_patience);
  const std::string before = old.changed ? old.changed->validator : "";
  bool entered = false;
  try {
    const std::string newest = editor_->change(names_[key], std::to_string(measured_.edits + 1), [&] {
      ledger_.supersede(key, before, clock::now());
      entered = true;
    });
    ledger_.settle(key, newest);
  } catch (const origin_error&) {
    if (entered) settle_unknown(key, before);
    throw;
  }
}

// The origin failed during the change, and only the origin knows whether it was made. If the origin does not answer,
// the ledger keeps the change, to stay on the safe side.
void writer::settle_unknown(std::size_t key, const std::string& before) {
  const answer now = origin_->load(names_[key], nullptr, edit_patience);
  if (now.changed && now.changed->validator != before) {
    ledger_.settle(key, now.changed->validator);
  } else {
    ledger_.withdraw(key);
  }
}

}  // namespace cache_refresh
