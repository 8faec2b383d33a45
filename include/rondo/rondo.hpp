// Rondo's core: all public headers except the adapters.
#pragma once

#include <rondo/call_site.hpp>
#include <rondo/errors.hpp>
#include <rondo/executor.hpp>
#include <rondo/firing.hpp>
#include <rondo/histogram.hpp>
#include <rondo/job.hpp>
#include <rondo/keyed_timers.hpp>
#include <rondo/manual_timer.hpp>
#include <rondo/polled_timer.hpp>
#include <rondo/recurrence.hpp>
#include <rondo/scheduler.hpp>
#include <rondo/scheduling_calls.hpp>
#include <rondo/slow_run.hpp>
#include <rondo/statistics.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer.hpp>
#include <rondo/timer_id.hpp>
#include <rondo/timer_info.hpp>
#include <rondo/timer_scope.hpp>
#include <rondo/trace.hpp>
#include <rondo/wheel.hpp>

/// A timer library: see the front page, or README.md.
namespace rondo {}

// If the compiler has coroutines.
#if defined(__cpp_impl_coroutine) && __has_include(<coroutine>)
#include <rondo/coroutine.hpp>
#endif
