#include "durable/simulated_database.hpp"

#include "durable/simulated_engine.hpp"

namespace durable_test {

std::shared_ptr<rondo::durable::detail::engine> simulated_database::open() {
  return std::make_shared<simulated_engine>(data_);
}

std::vector<row> simulated_database::rows() const {
  std::vector<row> all;
  for (const auto& [id, e] : data_->entries)
    if (e.committed) all.push_back(*e.committed);
  return all;
}

std::vector<std::string> simulated_database::owners() const {
  std::vector<std::string> all;
  for (const auto& [owner, lives] : data_->owners) all.push_back(owner);
  return all;
}

const row* simulated_database::find(std::int64_t id) const {
  const auto at = data_->entries.find(id);
  return at != data_->entries.end() && at->second.committed ? &*at->second.committed : nullptr;
}

bool simulated_database::is_locked(std::int64_t id) const {
  const auto at = data_->entries.find(id);
  return at != data_->entries.end() && at->second.by != nullptr;
}

}  // namespace durable_test
