// What a shared librondo makes visible. Everything else is hidden when the library is built by its own
// meson.build.
#pragma once

// The sentence is all that a compiler says then: a missing include ends it, where an #error has pages follow.
#if defined(_MSVC_LANG)
#if _MSVC_LANG < 202002L
#error "Rondo needs C++20: compile with /std:c++20 or later"
#endif
#elif __cplusplus < 202002L
#include "Rondo needs C++20: compile with -std=c++20 or later"
#endif

// Checked builds (Meson's option `checks`) keep more in some types. They call these by another name, so that
// what was compiled with and without does not link.
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
