#include "scheduler/core_members.hpp"

namespace rondo::detail {

template class basic_core<threads>;

}  // namespace rondo::detail
