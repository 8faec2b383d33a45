#include <libpq-fe.h>

#include <stdexcept>

#include "database.hpp"

namespace order_timeout {
namespace {

struct closer {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};

class postgresql_database : public database {
 public:
  explicit postgresql_database(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
    PQsetNoticeProcessor(
        connection_.get(), [](void*, const char*) {}, nullptr);
  }

  std::vector<row> ask(const char* sql, const row& parameters) override {
    std::vector<const char*> values;
    for (const std::string& each : parameters) values.push_back(each.c_str());
    const std::unique_ptr<PGresult, closer> result(PQexecParams(connection_.get(), sql,
                                                                static_cast<int>(values.size()), nullptr,
                                                                values.data(), nullptr, nullptr, 0));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail();
    std::vector<row> answer(static_cast<std::size_t>(PQntuples(result.get())));
    for (int line = 0; line < PQntuples(result.get()); ++line)
      for (int column = 0; column < PQnfields(result.get()); ++column)
        answer[static_cast<std::size_t>(line)].emplace_back(PQgetvalue(result.get(), line, column));
    return answer;
  }

  void begin() override { ask("BEGIN", {}); }
  void begin_setup() override {
    begin();
    ask("SELECT pg_advisory_xact_lock(hashtext('order_timeout'))", {});
  }
  rondo::durable::transaction handle() override { return connection_.get(); }
  const char* identity() const override { return "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"; }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(PQerrorMessage(connection_.get())); }

  std::unique_ptr<PGconn, closer> connection_;
};

}  // namespace

std::unique_ptr<database> open_postgresql(const std::string& store) {
  if (!store.starts_with("postgresql:") && !store.starts_with("postgres:")) return nullptr;
  return std::make_unique<postgresql_database>(store);
}

}  // namespace order_timeout
