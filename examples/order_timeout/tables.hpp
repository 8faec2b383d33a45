// The shop's own tables, beside those of the store.
#pragma once

#include "connections.hpp"

namespace order_timeout {

// Any number of nodes may do so at once.
void create_tables(connections&);

}  // namespace order_timeout
