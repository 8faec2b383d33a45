// The scheduling calls on a core.
#pragma once

#include <type_traits>
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
  auto& r = core.take_record(false);
  try {
    r.work = std::move(work);
    r.keep(std::move(with));
    if constexpr (std::is_same_v<When, recurrence>)
      return core.schedule(r, core.make_periodic(r, when, now), now);
    else
      return core.schedule(r, when, now);
  } catch (...) {
    core.discard(r, false);
    throw;
  }
}

}  // namespace rondo::test
