#include "durable/postgresql/pipeline.hpp"

#include <algorithm>
#include <utility>

#include <poll.h>

namespace rondo::durable::detail::postgresql {

bool pipeline::send(const char* text) {
  sent_.push_back({});
  return PQsendQueryParams(connection_, text, 0, nullptr, nullptr, nullptr, nullptr, 1) != 0;
}

bool pipeline::send(const statement& what, const parameters& with) {
  const auto being_prepared = [&](const sent& s) { return s.prepares == &what; };
  if (!prepared_.contains(&what) && std::none_of(sent_.begin(), sent_.end(), being_prepared)) {
    sent_.push_back({.prepares = &what});
    if (PQsendPrepare(connection_, what.name, what.text, 0, nullptr) == 0) return false;
  }
  sent_.push_back({.wanted = true});
  const auto values = with.pointers();
  return PQsendQueryPrepared(connection_, what.name, with.count(), values.data(), with.lengths().data(),
                             with.formats().data(), 1) != 0;
}

bool answer_comes(PGconn* on, std::chrono::milliseconds within) noexcept {
  auto until = std::chrono::steady_clock::now() + within;
  while (PQisBusy(on) != 0) {
    const short writing = PQflush(on) == 1 ? POLLOUT : 0;
    pollfd socket{.fd = PQsocket(on), .events = static_cast<short>(POLLIN | writing), .revents = 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return false;
    if (::poll(&socket, 1, static_cast<int>(rest.count())) <= 0) continue;
    until = std::chrono::steady_clock::now() + within;  // data flows
    if ((socket.revents & ~POLLOUT) != 0 && PQconsumeInput(on) == 0)
      return true;  // PQgetResult() reports what is wrong
  }
  return true;
}

/// libpq marks the end of each answer with a null result.
result pipeline::next() {
  const auto one = [&] {
    if (!silent_ && !answer_comes(connection_, within_)) silent_ = true;
    return silent_ ? result() : result(PQgetResult(connection_));
  };
  result answer = one();
  while (answer && PQstatus(connection_) == CONNECTION_OK && one()) {
  }
  return answer;
}

std::vector<result> pipeline::answers(std::chrono::milliseconds within) {
  within_ = within;
  std::vector<result> wanted;
  for (const auto& each : sent_) {
    auto answer = next();
    if (silent_) return wanted;
    if (!answer.good()) {
      // After an error the server skips the rest, and libpq reports that in place of each answer.
      if (!wrong_.has_value()) wrong_ = std::move(answer);
      if (PQstatus(connection_) != CONNECTION_OK) return wanted;
    } else if (each.wanted) {
      wanted.push_back(std::move(answer));
    } else if (each.prepares != nullptr) {
      prepared_.insert(each.prepares);
    }
  }
  const bool good = !wrong_.has_value();
  read_end();
  wrong_at_the_end_ = good && wrong_.has_value();
  return wanted;
}

/// The transaction is committed at the end of the pipeline, so an error that comes now is one of the commit.
void pipeline::read_end() {
  for (int results = 0; results != 4; ++results) {  // the error, the null after it, the end
    if (!answer_comes(connection_, within_)) {
      silent_ = true;
      return;
    }
    result one(PQgetResult(connection_));
    if (PQresultStatus(one.get()) == PGRES_PIPELINE_SYNC) break;
    if (one && !wrong_.has_value()) wrong_ = std::move(one);
  }
  if (PQexitPipelineMode(connection_) == 0 && !wrong_.has_value()) wrong_.emplace();
}

}  // namespace rondo::durable::detail::postgresql
