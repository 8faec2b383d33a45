// What is told of a task that took its time.
#pragma once

#include <rondo/call_site.hpp>
#include <rondo/firing.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// A run that took longer than options::slow_after.
struct slow_run {
  firing what;             ///< the run, as its task was told
  duration run_time{};     ///< its end − its start
  call_site scheduled_at;  ///< where its task was made; known in checked builds alone, and of no coroutine
};

}  // namespace rondo
