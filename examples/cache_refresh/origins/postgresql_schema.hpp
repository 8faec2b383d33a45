// The table that this program creates in a PostgreSQL database.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

// An announcement with a key means that its row is new, has changed or is gone. An empty one may mean any row.
inline constexpr const char* news_channel = "cache_refresh_item";

// Creates and fills the table unless it exists. If several programs call it at once, one does the work and the others
// wait.
void prepare_postgresql(const std::string& url, const origin_options&);

}  // namespace cache_refresh
