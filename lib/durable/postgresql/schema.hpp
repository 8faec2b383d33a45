// The tables, and how they come about.
#pragma once

#include <span>

#include "durable/postgresql/connection.hpp"

namespace rondo::durable::detail::postgresql {

/// Statements, separated by semicolons, that bring the schema to `version` from the one before.
struct migration {
  int version;
  const char* statements;
};

/// All of them, oldest first.
std::span<const migration> migrations() noexcept;

/// Brings the schema to the last version of `to`, in one transaction; of several processes one does it, and the others
/// wait. store_error: it is newer than that, or damaged.
void migrate(connection& database, std::span<const migration> to = migrations());

}  // namespace rondo::durable::detail::postgresql
