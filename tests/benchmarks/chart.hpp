// One workload's results as a picture.
#pragma once

#include <string>

#include "table.hpp"

namespace measure {

/// Writes a bar chart to `folder`, in a file named after the workload. False if that cannot be done.
bool write_chart(const table&, const std::string& folder);

}  // namespace measure
