// The figures of a run, or of several, in columns.
#pragma once

#include <vector>

#include "run.hpp"

namespace http_timeouts {

void print_plan(const options&);
void print_summary(const options&, const std::vector<outcome>&);

}  // namespace http_timeouts
