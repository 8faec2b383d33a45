// The output: the rows of the table while the program runs, and the summary.
#pragma once

#include <rondo/durable.hpp>

#include <chrono>
#include <vector>

#include "account.hpp"
#include "common/live_table.hpp"

namespace order_timeout {

std::vector<common::figure_row> figures(const account&, std::int64_t waiting, const std::vector<holding>&,
                                        const rondo::durable::dispatcher_statistics&);

void print_summary(std::chrono::nanoseconds elapsed, const account&,
                   const rondo::durable::dispatcher_statistics&);

}  // namespace order_timeout
