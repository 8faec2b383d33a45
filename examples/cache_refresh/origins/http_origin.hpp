// A web server: a list of names at a URL, and below it the values.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

std::unique_ptr<origin> open_http_origin(const origin_options&);

}  // namespace cache_refresh
