#include "display.hpp"

#include <fmt/core.h>

#include "common/text.hpp"

namespace order_timeout {

using common::readable;

std::vector<common::figure_row> figures(const account& now, std::int64_t waiting,
                                        const std::vector<holding>& holdings,
                                        const rondo::durable::dispatcher_statistics& own) {
  const auto count = [](auto value) { return std::to_string(value); };
  std::vector<common::figure_row> result = {
      {"orders",
       {{"all", count(now.orders)},
        {"open", count(now.open)},
        {"paid", count(now.paid)},
        {"closed", count(now.closed)},
        {"lost", count(now.lost)}}},
      {"tasks",
       {{"waiting", count(waiting)},
        {"again", count(now.again)},
        {"prices", count(now.prices)},
        {"reports", count(now.reports)}}},
      {"run here",
       {{"fired", count(own.fired)},
        {"retried", count(own.retried)},
        {"leases lost", count(own.leases_lost)}}},
      {"lateness",
       {{"p50", readable(own.lateness.quantile(0.5))},
        {"p99", readable(own.lateness.quantile(0.99))},
        {"max", readable(own.lateness.max())}}},
  };
  for (const holding& each : holdings)  // "host:process:random"
    result.push_back(
        {each.owner.substr(0, each.owner.rfind(':')), {{"held", each.held}, {"running", each.running}}});
  return result;
}

void print_summary(std::chrono::nanoseconds elapsed, const account& all,
                   const rondo::durable::dispatcher_statistics& own) {
  fmt::print("\nSummary of {}, for all orders in the store\n", readable(elapsed));
  fmt::print("{} orders, {} closed, {} paid, {} lost, {} run again after a lease ran out\n", all.orders,
             all.closed, all.paid, all.lost, all.again);
  if (all.open > 0) fmt::print("  {} more are open: their limits wait in the store\n", all.open);
  fmt::print("  of the paid orders {} are confirmed, {} will be; price changes: {}\n", all.confirmed,
             all.paid - all.confirmed, all.prices);
  fmt::print("  {} reports, {} sent, {} of them before an earlier one\n", all.reports, all.sent,
             all.overtaken);
  fmt::print("  this node  {} fired, {} retried, {} leases lost, {} handed back; lateness p50 {}, p99 {}\n",
             own.fired, own.retried, own.leases_lost, own.handed_back, readable(own.lateness.quantile(0.5)),
             readable(own.lateness.quantile(0.99)));
}

}  // namespace order_timeout
