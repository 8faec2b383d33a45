// Whether the compiler tells the explorer of each access to plain data, and of memcpy(), memmove() and memset().
#pragma once

namespace rondo::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool plain_data_is_watched = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool plain_data_is_watched = true;
#else
inline constexpr bool plain_data_is_watched = false;
#endif
#else
inline constexpr bool plain_data_is_watched = false;
#endif

#if defined(__clang__)
inline constexpr bool copies_are_watched = plain_data_is_watched && __clang_major__ >= 15;
#else
inline constexpr bool copies_are_watched = false;
#endif

}  // namespace rondo::test
