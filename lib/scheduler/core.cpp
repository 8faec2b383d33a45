#include "scheduler/core.hpp"

#include "scheduler/core_cancel.hpp"
#include "scheduler/core_run.hpp"
#include "scheduler/core_schedule.hpp"
#include "scheduler/core_stop.hpp"

namespace rondo::detail {

template class basic_core<threads>;

}  // namespace rondo::detail
