// A folder: its files are the values, and their names are the keys.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

std::unique_ptr<origin> open_file_origin(const origin_options&);

}  // namespace cache_refresh
