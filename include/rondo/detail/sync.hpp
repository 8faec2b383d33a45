// The locks and atomics of public headers that threads share.
#pragma once

#include <atomic>
#include <mutex>

/// As for lib/sync/sync.hpp, tests/instrumented has another header of this name.
namespace rondo::detail::header_sync {

using mutex = std::mutex;

template <class T>
using atomic = std::atomic<T>;

}  // namespace rondo::detail::header_sync
