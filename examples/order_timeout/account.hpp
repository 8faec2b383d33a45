// What the store says about all orders, of all nodes and all runs, at one moment.
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
  std::int64_t paid = 0;  // those confirmed included
  std::int64_t confirmed = 0;
  std::int64_t lost = 0;    // open, to be confirmed, or a price plan to start, and no live task for it
  std::int64_t again = 0;   // runs after a lease that ran out
  std::int64_t prices = 0;  // that have changed

  bool adds_up() const { return lost == 0 && orders == open + closed + paid; }
};
account take_account(connections&);

// Orders up to this number are open.
std::int64_t last_order(connections&);
std::int64_t open_up_to(connections&, std::int64_t order);

// What each node holds, as the store has it: a node that died holds its tasks until their leases run out.
struct holding {
  std::string owner;
  std::string held;
  std::string running;
};
std::vector<holding> take_holdings(connections&);
std::int64_t waiting(connections&);

}  // namespace order_timeout
