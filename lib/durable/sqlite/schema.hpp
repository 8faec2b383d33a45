// The tables, and how those of an earlier version are brought to this one.
#pragma once

#include <string>
#include <vector>

#include "durable/sqlite/connection.hpp"

namespace rondo::durable::detail::sqlite {

/// Element n turns the schema of version n into that of version n + 1. An empty database has version 0.
using migrations = std::vector<std::vector<std::string>>;

const migrations& all_migrations();

/// Creates or migrates the schema, in one transaction. Throws store_error if it is newer than all migrations, or
/// damaged.
void bring_up_to_date(connection& database, const migrations& steps);

}  // namespace rondo::durable::detail::sqlite
