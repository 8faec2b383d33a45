#include "ledger.hpp"

#include <algorithm>
#include <functional>

namespace cache_refresh {
namespace {

std::uint64_t hash(const std::string& validator) { return std::hash<std::string>{}(validator); }

}  // namespace

void ledger::supersede(std::size_t key, const std::string& validator, rondo::time_point at) {
  const std::lock_guard guard(lock_of(key));
  histories_[key].push_back({hash(validator), at});
}

void ledger::withdraw(std::size_t key) {
  const std::lock_guard guard(lock_of(key));
  histories_[key].pop_back();
}

rondo::duration ledger::behind(std::size_t key, const std::string& validator,
                               rondo::time_point served_at) const {
  const std::uint64_t value = hash(validator);
  const std::lock_guard guard(lock_of(key));
  const auto& past = histories_[key];
  const auto found =
      std::find_if(past.rbegin(), past.rend(), [&](const superseded& s) { return s.value == value; });
  // Not found: it is current. Superseded after it was served: it was.
  return found == past.rend() ? rondo::duration::zero()
                              : std::max(served_at - found->at, rondo::duration::zero());
}

}  // namespace cache_refresh
