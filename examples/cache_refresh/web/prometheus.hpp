// The figures for Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <string>

#include "../snapshot.hpp"

namespace cache_refresh {

// In text format 0.0.4. Durations are in seconds. No label contains a key, so the number of series never changes.
std::string prometheus_text(const snapshot&);

}  // namespace cache_refresh
