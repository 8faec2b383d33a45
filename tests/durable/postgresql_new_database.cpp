#include <stdexcept>
#include <utility>

#include "durable/postgresql_database.hpp"

namespace durable_test {

namespace {

// If there is no server, main() has ended the program before any test.
postgresql_server& server() {
  auto* const there = postgresql_server::get();
  if (there == nullptr) throw std::runtime_error("PostgreSQL is not installed");
  return *there;
}

}  // namespace

std::unique_ptr<sql_database> new_sql_database() { return std::make_unique<postgresql_database>(server()); }

std::unique_ptr<sql_database> new_sql_database(std::function<rondo::durable::wall_time()> clock) {
  return std::make_unique<postgresql_database>(server(), std::move(clock));
}

std::unique_ptr<database> new_database() { return new_sql_database(); }

}  // namespace durable_test
