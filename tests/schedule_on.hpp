// The scheduling calls, of a core.
#pragma once

#include <memory>
#include <utility>

#include <rondo/executor.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

namespace rondo::test {

/// `when` is a time point or a recurrence.
template <class Core, class When>
timer_id schedule_on(Core& core, const When& when, time_point now, task work,
                     std::shared_ptr<const executor> run_on = {}) {
  auto& r = core.take_record();
  try {
    r.work = std::move(work);
    r.plain.release(run_on == nullptr);
    r.run_on = std::move(run_on);
    return core.schedule(r, when, now);
  } catch (...) {
    core.discard(r);
    throw;
  }
}

}  // namespace rondo::test
