#include "interleavings/explored_core.hpp"

#include "scheduler/core_members.hpp"

namespace rondo::detail {

template class basic_core<test::explored>;

}  // namespace rondo::detail
