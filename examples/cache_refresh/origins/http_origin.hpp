// A web server: a URL returns a list of names, and the values are below it.
#pragma once

#include "../origin.hpp"

namespace cache_refresh {

std::unique_ptr<origin> open_http_origin(const origin_options&);

}  // namespace cache_refresh
