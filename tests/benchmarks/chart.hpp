// Draws the results of one workload.
#pragma once

#include <string>

#include "table.hpp"

namespace measure {

/// Writes a bar chart to a file in `folder`, named after the workload. Returns false if that fails.
bool write_chart(const table&, const std::string& folder);

}  // namespace measure
