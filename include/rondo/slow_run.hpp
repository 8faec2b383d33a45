// A run that took too long, as `on_slow` receives it.
#pragma once

#include <rondo/call_site.hpp>
#include <rondo/firing.hpp>
#include <rondo/time.hpp>

namespace rondo {

/// A run that took longer than options::slow_after.
struct slow_run {
  firing what;             ///< the run, as its task received it
  duration run_time{};     ///< its end − its start
  call_site scheduled_at;  ///< where its task was created; only in checked builds, not for coroutines
};

}  // namespace rondo
