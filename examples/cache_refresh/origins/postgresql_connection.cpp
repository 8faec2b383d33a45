#include "postgresql_connection.hpp"

#include <new>
#include <utility>

#include <fmt/core.h>
#include <poll.h>

#include "parts.hpp"

namespace cache_refresh {
namespace {

using clock = rondo::time_point::clock;

std::vector<const char*> pointers_to(const std::vector<std::optional<std::string>>& parameters) {
  std::vector<const char*> all;
  for (const auto& each : parameters) all.push_back(each ? each->c_str() : nullptr);
  return all;
}

}  // namespace

std::string one_line(const char* message) {
  std::string text = message;
  text.resize(std::min(text.find('\n'), text.size()));
  return text.empty() ? "the connection failed" : text;
}

postgresql_connection::postgresql_connection(const std::string& url, rondo::duration limit,
                                             const stop_event* stop)
    : stop_(stop), limit_(limit), until_(clock::now() + whole_milliseconds(limit)) {
  connect(url);
  PQsetNoticeProcessor(
      handle(), [](void*, const char*) {}, nullptr);
  PQsetnonblocking(handle(), 1);
}

void postgresql_connection::connect(const std::string& url) {
  // Parameters before the URL apply unless the URL overrides them.
  const char* const names[] = {"fallback_application_name",
                               "keepalives_idle",
                               "keepalives_interval",
                               "keepalives_count",
                               "dbname",
                               "client_encoding",
                               nullptr};
  const char* const values[] = {"cache_refresh", "30", "10", "3", url.c_str(), "UTF8", nullptr};
  connection_.reset(PQconnectStartParams(names, values, 1));
  if (!connection_) throw std::bad_alloc();
  if (PQstatus(handle()) == CONNECTION_BAD) fail();
  for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQconnectPoll(handle())) {
    if (next == PGRES_POLLING_FAILED) fail();
    wait_for(next == PGRES_POLLING_READING ? POLLIN : POLLOUT);
  }
}

void postgresql_connection::fail() { throw origin_error(one_line(PQerrorMessage(handle()))); }

void postgresql_connection::wait_for(short events) {
  while (true) {
    const auto left = until_ - clock::now();
    pollfd all[] = {{PQsocket(handle()), events, 0},
                    {stop_ == nullptr ? -1 : stop_->descriptor(), POLLIN, 0}};
    const int ready =
        left <= rondo::duration{} ? 0 : ::poll(all, 2, static_cast<int>(whole_milliseconds(left).count()));
    if (ready < 0) continue;  // a signal
    if (ready > 0 && all[1].revents == 0) return;
    if (ready == 0 && left > rondo::duration{}) continue;  // the next iteration sees that the time is over
    throw origin_error(ready > 0 ? "interrupted"
                                 : fmt::format("no answer within {} ms", whole_milliseconds(limit_).count()));
  }
}

void postgresql_connection::flush() {
  int left = 0;
  while ((left = PQflush(handle())) == 1) {
    wait_for(POLLIN | POLLOUT);
    // The server may wait for us to read before it takes more.
    if (PQconsumeInput(handle()) == 0) fail();
  }
  if (left < 0) fail();
}

// Waits for the end of what was sent, and returns its last result.
postgresql_connection::result postgresql_connection::finish(bool sent) {
  if (!sent) fail();
  flush();
  result last(nullptr);
  while (true) {
    while (PQisBusy(handle()) != 0) {
      wait_for(POLLIN);
      if (PQconsumeInput(handle()) == 0) fail();
    }
    result next(PQgetResult(handle()));
    if (next.get() == nullptr) break;
    last = std::move(next);
    const auto status = PQresultStatus(last.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) break;
  }
  const auto status = PQresultStatus(last.get());  // PGRES_FATAL_ERROR if there is no result
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_COPY_IN) return last;
  const char* why = PQresultErrorField(last.get(), PG_DIAG_MESSAGE_PRIMARY);
  throw origin_error(one_line(why == nullptr ? PQerrorMessage(handle()) : why));
}

postgresql_connection::result postgresql_connection::execute(
    const char* sql, const std::vector<std::optional<std::string>>& parameters) {
  until_ = clock::now() + whole_milliseconds(limit_);
  const auto values = pointers_to(parameters);
  // Several statements in one call are possible only without parameters.
  return finish((parameters.empty() ? PQsendQuery(handle(), sql)
                                    : PQsendQueryParams(handle(), sql, static_cast<int>(values.size()),
                                                        nullptr, values.data(), nullptr, nullptr, 0)) == 1);
}

void postgresql_connection::prepare(const char* name, const std::string& sql) {
  until_ = clock::now() + whole_milliseconds(limit_);
  finish(PQsendPrepare(handle(), name, sql.c_str(), 0, nullptr) == 1);
}

postgresql_connection::result postgresql_connection::describe(const char* name) {
  until_ = clock::now() + whole_milliseconds(limit_);
  return finish(PQsendDescribePrepared(handle(), name) == 1);
}

postgresql_connection::result postgresql_connection::execute_prepared(
    const char* name, const std::vector<std::optional<std::string>>& parameters) {
  until_ = clock::now() + whole_milliseconds(limit_);
  const auto values = pointers_to(parameters);
  return finish(PQsendQueryPrepared(handle(), name, static_cast<int>(values.size()), values.data(), nullptr,
                                    nullptr, 0) == 1);
}

void postgresql_connection::begin_copy(const char* sql) {
  until_ = clock::now() + whole_milliseconds(limit_);
  finish(PQsendQuery(handle(), sql) == 1);
}

void postgresql_connection::copy(const std::string& piece) {
  until_ = clock::now() + whole_milliseconds(limit_);
  int taken = 0;
  while ((taken = PQputCopyData(handle(), piece.data(), static_cast<int>(piece.size()))) == 0)
    wait_for(POLLOUT);
  if (taken < 0) fail();
  flush();  // otherwise libpq would buffer it all
}

void postgresql_connection::end_copy() {
  until_ = clock::now() + whole_milliseconds(limit_);
  int ended = 0;
  while ((ended = PQputCopyEnd(handle(), nullptr)) == 0) wait_for(POLLOUT);
  finish(ended == 1);
}

}  // namespace cache_refresh
