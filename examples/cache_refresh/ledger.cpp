#include "ledger.hpp"

#include <algorithm>

namespace cache_refresh {

ledger::ledger(const std::vector<row>& rows) : histories_(rows.size()) {
  for (std::size_t key = 0; key < rows.size(); ++key) histories_[key].first = rows[key].version;
}

void ledger::announce(std::size_t key, std::int64_t version, rondo::time_point at) {
  const std::lock_guard guard(lock_of(key));
  history& past = histories_[key];
  // One more, unless another program has written in between, at an unknown time before now. (A version that was set
  // back by hand cannot be told from the next one.)
  const std::int64_t next = std::max(version, past.newest() + 1);
  past.unannounced += next - past.newest() - 1;
  past.superseded.resize(static_cast<std::size_t>(next - past.first), at);
}

void ledger::withdraw(std::size_t key) {
  const std::lock_guard guard(lock_of(key));
  histories_[key].superseded.pop_back();
}

rondo::duration ledger::behind(std::size_t key, std::int64_t version, rondo::time_point served_at) const {
  const std::lock_guard guard(lock_of(key));
  const history& past = histories_[key];
  const auto age = static_cast<std::size_t>(version - past.first);
  if (age >= past.superseded.size()) return rondo::duration::zero();
  // Superseded after it was served: it was current.
  return std::max(served_at - past.superseded[age], rondo::duration::zero());
}

std::int64_t ledger::unannounced(std::size_t key, std::int64_t newest) const {
  const std::lock_guard guard(lock_of(key));
  const history& past = histories_[key];
  return past.unannounced + newest - past.newest();
}

}  // namespace cache_refresh
