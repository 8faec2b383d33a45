#include "writer.hpp"

#include <chrono>
#include <random>

#include "common/pacer.hpp"

namespace cache_refresh {
namespace {

constexpr std::chrono::seconds patience{2};

}  // namespace

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
  const answer old = origin_->load(names_[key], nullptr, patience);
  const std::string before = old.changed ? old.changed->validator : "";
  bool entered = false;
  try {
    const std::string newest = editor_->change(names_[key], std::to_string(measured_.edits + 1), [&] {
      ledger_.supersede(key, before, std::chrono::steady_clock::now());
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
  const answer now = origin_->load(names_[key], nullptr, patience);
  if (now.changed && now.changed->validator != before) {
    ledger_.settle(key, now.changed->validator);
  } else {
    ledger_.withdraw(key);
  }
}

}  // namespace cache_refresh
