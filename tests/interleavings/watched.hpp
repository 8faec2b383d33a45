// Whether the compiler tells the explorer of each access to plain data.
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

}  // namespace rondo::test
