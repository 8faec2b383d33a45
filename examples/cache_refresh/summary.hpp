// Prints the summary at the end of a run.
#pragma once

#include <string>

#include "snapshot.hpp"
#include "station.hpp"

namespace cache_refresh {

void print_summary(const snapshot& end, const agreement&, const std::string& last_error);

}  // namespace cache_refresh
