#include <stdexcept>

#include "durable/postgresql_database.hpp"

namespace durable_test {

// If there is no server, main() has ended the program before any test.
std::unique_ptr<sql_database> new_sql_database() {
  auto* const server = postgresql_server::get();
  if (server == nullptr) throw std::runtime_error("PostgreSQL is not installed");
  return std::make_unique<postgresql_database>(*server);
}

std::unique_ptr<database> new_database() { return new_sql_database(); }

}  // namespace durable_test
