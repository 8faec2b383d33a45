// The members of basic_core, for files that instantiate it. All others include core.hpp.
#pragma once

#include "scheduler/core_dispatch.hpp"
#include "scheduler/core_finish.hpp"
#include "scheduler/core_group.hpp"
#include "scheduler/core_query.hpp"
#include "scheduler/core_schedule.hpp"
#include "scheduler/core_stop.hpp"
#include "scheduler/core_submit.hpp"
