// The longest that rondo::wheel makes its user wait where it fires next to nothing.
#pragma once

#include "report.hpp"

/// Timers of one bucket, each in another round, fired one at a time: how long the single calls take. A call
/// fires one timer, whatever else it does is tidying up in that bucket.
void show_worst_visits(measure::report&);
