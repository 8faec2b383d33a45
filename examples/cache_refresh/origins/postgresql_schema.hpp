// The table that this program makes in a PostgreSQL database.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

// Announced with a key: its row is new, has changed or is gone; with nothing: any row.
inline constexpr const char* news_channel = "cache_refresh_item";

// Makes and fills the table, unless there is one. Of several programs that do so at once, one does; the others wait.
void prepare_postgresql(const std::string& url, const origin_options&);

}  // namespace cache_refresh
