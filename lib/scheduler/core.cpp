#include "scheduler/core.hpp"

namespace rondo::detail {

template class basic_core<threads>;

}  // namespace rondo::detail
