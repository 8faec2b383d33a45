// A PostgreSQL server: a table that this program creates and fills, or the user's own queries.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

std::unique_ptr<origin> open_postgresql_origin(const origin_options&);

}  // namespace cache_refresh
