#include "loader.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace cache_refresh {
namespace {

using clock = rondo::scheduler::clock;

// Treats an answer that no origin can mean as a failure, so that the held value stays.
void refuse_nonsense(const answer& got) {
  if (got.changed && got.changed->value.empty() && got.changed->validator.empty())
    throw origin_error("an answer without a value");
  if (got.ttl.soft && *got.ttl.soft <= rondo::duration::zero())
    throw origin_error("an answer with a time to live of 0 or less");
}

}  // namespace

loader::loader(const loader_options& options, origin& from, const std::vector<std::string>& names,
               measured& measured, landings& landings)
    : options_(options), names_(names), measured_(measured), landings_(landings) {
  for (std::size_t i = 0; i < options.threads; ++i) connections_.push_back(from.connect());
  for (const auto& each : connections_) {
    threads_.emplace_back([this, connection = each.get()](std::stop_token stop) {
      while (true) {
        std::unique_lock guard(lock_);
        came_.wait(guard, stop, [this] { return !waiting_.empty(); });
        if (stop.stop_requested()) return;
        record_cache::load next = std::move(waiting_.front());
        waiting_.pop_front();
        guard.unlock();
        load(*connection, std::move(next));
      }
    });
  }
}

void loader::begin(record_cache::load begun) {
  {
    const std::lock_guard guard(lock_);
    waiting_.push_back(std::move(begun));
  }
  came_.notify_one();
}

void loader::stop() {
  for (std::jthread& each : threads_) each.request_stop();
  threads_.clear();
  std::deque<record_cache::load> unstarted;  // destroyed without the lock, because that ends the loads
  const std::lock_guard guard(lock_);
  waiting_.swap(unstarted);
}

std::string loader::last_error() const {
  const std::lock_guard guard(lock_);
  return last_error_;
}

void loader::load(origin_connection& connection, record_cache::load begun) {
  const clock::time_point start = clock::now();
  const key_number key = begun.key();
  bool succeeded = false;
  try {
    answer got = connection.load(names_[key], begun.held().get(), options_.limit);
    refuse_nonsense(got);
    if (options_.soft_ttl) got.ttl.soft = options_.soft_ttl;
    if (got.changed) {
      begun.store(std::move(*got.changed), got.ttl);
    } else {
      begun.not_modified(got.ttl);
    }
    succeeded = true;
  } catch (const std::exception& bad) {
    begun.fail(bad.what());
    const std::lock_guard guard(lock_);
    last_error_ = bad.what();
  }
  const clock::time_point end = clock::now();
  measured_.loads.record(end - start);
  landings_.add(key, start, succeeded, end);
}

}  // namespace cache_refresh
