#include <utility>

#include "durable/sqlite_database.hpp"

namespace durable_test {

std::unique_ptr<sql_database> new_sql_database() { return std::make_unique<sqlite_database>(); }

std::unique_ptr<sql_database> new_sql_database(std::function<rondo::durable::wall_time()> clock) {
  return std::make_unique<sqlite_database>(std::move(clock));
}

std::unique_ptr<database> new_database() { return new_sql_database(); }

}  // namespace durable_test
