#include "cache.hpp"

#include <utility>

namespace cache_refresh {

served cache::find(key_number key, rondo::time_point now) const {
  const entry& at = entries_[key];
  const std::lock_guard guard(at.lock);
  return {at.value, at.value != nullptr && now >= at.expires};
}

served cache::await_first(key_number key, rondo::duration patience) {
  entry& at = entries_[key];
  std::unique_lock guard(at.lock);
  at.loaded.wait_for(guard, patience, [&at] { return at.value != nullptr; });
  return {at.value, false};
}

bool cache::begin_load(key_number key) {
  entry& at = entries_[key];
  const std::lock_guard guard(at.lock);
  return !std::exchange(at.loading, true);
}

void cache::store(key_number key, record value, rondo::time_point expires) {
  auto shared = std::make_shared<const record>(std::move(value));
  entry& at = entries_[key];
  const std::lock_guard guard(at.lock);
  at.value.swap(shared);  // the old value is destroyed after the lock is released
  at.expires = expires;
  at.failures = 0;
  at.loading = false;
  at.loaded.notify_all();
}

unsigned cache::note_failure(key_number key) {
  entry& at = entries_[key];
  const std::lock_guard guard(at.lock);
  at.loading = false;
  return ++at.failures;
}

key_counts cache::count(rondo::time_point now) const {
  key_counts counts;
  for (const entry& at : entries_) {
    const std::lock_guard guard(at.lock);
    if (at.value == nullptr) {
      ++counts.empty;
    } else if (now >= at.expires) {
      ++counts.stale;
    } else {
      ++counts.fresh;
    }
    if (at.failures > 0) ++counts.failed;
  }
  return counts;
}

}  // namespace cache_refresh
