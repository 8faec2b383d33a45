#include "ledger.hpp"

#include <algorithm>
#include <functional>

namespace cache_refresh {
namespace {

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

}  // namespace cache_refresh
