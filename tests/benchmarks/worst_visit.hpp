// How long a single call of rondo::wheel takes at most while it fires next to nothing.
#pragma once

#include "report.hpp"

/// Adds the longest single calls for timers in one far list, of one tick, or in one bucket. An advance() fires one
/// timer; the rest of its time is housekeeping.
void show_worst_visits(measure::report&);
