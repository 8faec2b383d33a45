// Variables of threads that are read in each call.
#pragma once

#include <cstddef>  // which says whose library this is

/// As `thread_local`, for a variable of a few bytes with a constant initial value. In a shared library each use of a
/// plain one calls the dynamic loader's __tls_get_addr(). This model costs one instruction, and a place in the memory
/// that every thread has from the beginning; glibc keeps some of that ready for libraries that are loaded later.
#if defined(__GLIBC__)
#define RONDO_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] thread_local
#else
#define RONDO_THREAD_LOCAL thread_local
#endif
