// Thread-local variables that every call reads.
#pragma once

#include <cstddef>  // defines __GLIBC__

/// As `thread_local`, for variables of a few bytes with a constant initial value. In a shared library each use of a
/// plain `thread_local` calls the dynamic loader's __tls_get_addr(). This model costs one instruction, and space in
/// the static TLS block of each thread, of which glibc reserves some for libraries that are loaded later.
#if defined(__GLIBC__)
#define RONDO_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] thread_local
#else
#define RONDO_THREAD_LOCAL thread_local
#endif
