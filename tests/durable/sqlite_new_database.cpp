#include "durable/sqlite_database.hpp"

namespace durable_test {

std::unique_ptr<database> new_database() { return std::make_unique<sqlite_database>(); }

}  // namespace durable_test
