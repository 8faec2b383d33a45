// A database in a file: the default, which this program creates and fills, or one of the user's own.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

std::unique_ptr<origin> open_sqlite_origin(const origin_options&);

}  // namespace cache_refresh
