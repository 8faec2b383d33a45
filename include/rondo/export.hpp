// What a shared librondo exports. Everything else is hidden when the library is built by its own meson.build.
#pragma once

// The compiler stops at this missing include and prints only this sentence. After an #error it would go on and print
// pages of other errors.
#if defined(_MSVC_LANG)
#if _MSVC_LANG < 202002L
#error "Rondo needs C++20: compile with /std:c++20 or later"
#endif
#elif __cplusplus < 202002L
#include "Rondo needs C++20: compile with -std=c++20 or later"
#endif

// Checked builds (Meson's option `checks`) store more in some types. They mangle the names of these differently, so
// that code compiled with and without checks does not link.
#if defined(RONDO_CHECKS) && defined(__GNUC__)
#define RONDO_CHECKED_ABI __attribute__((abi_tag("rondo_checks")))
#else
#define RONDO_CHECKED_ABI
#endif

#if defined(_WIN32)
#if defined(RONDO_BUILDING_SHARED)
#define RONDO_EXPORT __declspec(dllexport)
#else
#define RONDO_EXPORT
#endif
#else
#define RONDO_EXPORT __attribute__((visibility("default")))
#endif
