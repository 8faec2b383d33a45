// The tables, and how they are created.
#pragma once

#include <span>

#include "durable/postgresql/connection.hpp"

namespace rondo::durable::detail::postgresql {

/// Statements, separated by semicolons, that bring the schema from the previous version to `version`.
struct migration {
  int version;
  const char* statements;
};

/// All migrations, oldest first.
std::span<const migration> migrations() noexcept;

/// Brings the schema to the last version of `to`, in one transaction. If several processes do so at once, one migrates
/// and the others wait. Throws store_error if the schema is newer than that, or damaged.
void migrate(connection& database, std::span<const migration> to = migrations());

}  // namespace rondo::durable::detail::postgresql
