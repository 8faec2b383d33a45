// Counts the calls of timerfd_settime() in this program.
#pragma once

namespace rondo::test {

/// So many since the last call of this.
long settime_calls() noexcept;

}  // namespace rondo::test
