#include "durable/postgresql/pipeline.hpp"

#include <algorithm>
#include <utility>

namespace rondo::durable::detail::postgresql {

bool pipeline::send(const char* text) {
  sent_.push_back({});
  return PQsendQueryParams(connection_, text, 0, nullptr, nullptr, nullptr, nullptr, 1) != 0;
}

bool pipeline::send(const call& what) {
  const auto being_prepared = [&](const sent& s) { return s.prepares == what.what; };
  if (!prepared_.contains(what.what) && std::none_of(sent_.begin(), sent_.end(), being_prepared)) {
    sent_.push_back({.prepares = what.what});
    if (PQsendPrepare(connection_, what.what->name, what.what->text, 0, nullptr) == 0) return false;
  }
  sent_.push_back({.wanted = true});
  const auto values = what.with.pointers();
  return PQsendQueryPrepared(connection_, what.what->name, what.with.count(), values.data(),
                             what.with.lengths().data(), what.with.formats().data(), 1) != 0;
}

/// libpq marks the end of each answer by a null.
result pipeline::next() {
  result answer(PQgetResult(connection_));
  while (answer && PQstatus(connection_) == CONNECTION_OK && result(PQgetResult(connection_))) {
  }
  return answer;
}

std::vector<result> pipeline::answers() {
  std::vector<result> wanted;
  for (const auto& each : sent_) {
    auto answer = next();
    if (!answer.good()) {
      // After an error the server passes over the rest, and libpq says so in the place of each answer.
      if (!wrong_.has_value()) wrong_ = std::move(answer);
      if (PQstatus(connection_) != CONNECTION_OK) return wanted;
    } else if (each.wanted) {
      wanted.push_back(std::move(answer));
    } else if (each.prepares != nullptr) {
      prepared_.insert(each.prepares);
    }
  }
  const result end(PQgetResult(connection_));
  if (PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC || PQexitPipelineMode(connection_) == 0)
    if (!wrong_.has_value()) wrong_.emplace();
  return wanted;
}

}  // namespace rondo::durable::detail::postgresql
