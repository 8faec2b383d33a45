// The scheduling calls on a core.
#pragma once

#include <utility>

#include <rondo/executor.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::test {

/// `when` is a time point or a recurrence.
template <class Core, class When>
timer_id schedule_on(Core& core, const When& when, time_point now, task work, timer_options with = {}) {
  auto& r = core.take_record();
  try {
    r.work = std::move(work);
    r.keep(std::move(with));
    return core.schedule(r, when, now);
  } catch (...) {
    core.discard(r);
    throw;
  }
}

}  // namespace rondo::test
