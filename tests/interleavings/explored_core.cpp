#include "interleavings/explored_core.hpp"

namespace rondo::detail {

template class basic_core<test::explored>;

}  // namespace rondo::detail
