// The state of all orders in the store, of all nodes and all runs, at one moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "connections.hpp"

namespace order_timeout {

struct account {
  std::int64_t orders = 0;
  std::int64_t open = 0;
  std::int64_t closed = 0;
  std::int64_t paid = 0;  // including confirmed orders
  std::int64_t confirmed = 0;
  std::int64_t lost = 0;    // open or paid, but without a live task
  std::int64_t again = 0;   // runs after a lease has run out
  std::int64_t prices = 0;  // price changes so far
  std::int64_t reports = 0;
  std::int64_t sent = 0;       // reports
  std::int64_t overtaken = 0;  // reports that were sent before that of an earlier night

  bool adds_up() const { return lost == 0 && orders == open + closed + paid && overtaken == 0; }
};
account take_account(connections&);

// The number of the last order; how many orders up to a given number are open.
std::int64_t last_order(connections&);
std::int64_t open_up_to(connections&, std::int64_t order);

// The tasks that each node holds, according to the store: a dead node holds its tasks until their leases run out.
struct holding {
  std::string owner;
  std::string held;
  std::string running;
};
std::vector<holding> take_holdings(connections&);
std::int64_t waiting(connections&);

}  // namespace order_timeout
