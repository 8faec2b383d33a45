// The shop's own tables, next to those of the store.
#pragma once

#include "connections.hpp"

namespace order_timeout {

// Any number of nodes may call it at once.
void create_tables(connections&);

}  // namespace order_timeout
